// Samples by step, and the layers: a heat map of updates for each run, and the histograms of a chosen weight.

function showSamples() {
  const runs = data.runs.map((run, i) => [run, i]).filter(([run]) => run.samples.texts.length);
  $('samples-section').hidden = !runs.length;
  if (!runs.length) return;
  const steps = [...new Set(runs.flatMap(([run]) => run.samples.texts.map(([step]) => step)))].sort((a, b) => a - b);
  const slider = $('sample-step');
  slider.max = steps.length - 1;
  slider.value = steps.length - 1;
  const show = () => {
    const step = steps[+slider.value];
    slider.setAttribute('aria-valuetext', 'step ' + step);
    $('sample-at').textContent = step;
    $('samples').replaceChildren(...runs.filter(([, i]) => !hidden.has(i)).map(([run]) => {
      const box = element('div', ''), before = run.samples.texts.filter(([at]) => at <= step);
      const [at, text] = before.length ? before[before.length - 1] : [null, '(no sample yet)'];
      const left = run.samples.of - run.samples.texts.length;
      box.append(element('p', run.name + (at === null ? '' : ', after step ' + at) + (left ? ` (${left} other samples were left out)` : '')),
                 element('pre', text, {tabindex: 0}));
      return box;
    }));
  };
  slider.oninput = show;
  onRuns.push(show);
  show();
}

// The colour of a ratio: blue below -3, orange above, and the page's line colour at -3.
function ratioColor(ratio) {
  const off = Math.max(-1, Math.min(1, (ratio + 3) / 2));
  const strength = Math.round(Math.abs(off) * 100);
  const light = dark.matches ? 24 + strength * 0.42 : 92 - strength * 0.5;
  return `hsl(${off < 0 ? 215 : 24} ${20 + strength * 0.65}% ${light}%)`;
}

class Layers {
  constructor(run, index) {
    Object.assign(this, {run, index, row: 0, column: run.layers.steps.length - 1});
    const {names, steps, of, of_names} = run.layers;
    this.box = element('div', '');
    const left = [of > steps.length && `${of - steps.length} of ${of} evaluations`, of_names > names.length && `${of_names - names.length} of ${of_names} weights`].filter(Boolean);
    this.canvas = element('canvas', '', {tabindex: 0, role: 'img', 'aria-label': `${run.name}: size of updates by weight and evaluation. Arrow keys choose a cell.`});
    this.readout = element('p', '', {class: 'readout', 'aria-live': 'polite'});
    this.histogram = element('canvas', '', {role: 'img'});
    this.select = element('select', '', {'aria-label': 'weight'});
    names.forEach((name, i) => this.select.append(element('option', name, {value: i})));
    this.select.onchange = () => this.choose(+this.select.value, this.column);
    const details = element('details', ''), table = element('table', '');
    details.append(element('summary', 'figures as a table'), region('updates of ' + run.name, table));
    details.ontoggle = () => details.open && fill(table, ['weight', ...steps.map(step => '#step ' + step)],
        names.map((name, i) => [name, ...run.layers.updates[i]]));
    this.box.append(element('p', run.name + (left.length ? `; left out: ${left.join(' and ')}` : '')), this.canvas, this.readout, this.select, this.histogram, details);
    this.canvas.addEventListener('pointerdown', event => this.choose(Math.floor(event.offsetY / this.cell), Math.floor(event.offsetX / this.canvas.clientWidth * steps.length)));
    onArrows(this.canvas, (down, right) => this.choose(this.row + down, this.column + right));
  }

  choose(row, column) {
    const {names, steps} = this.run.layers;
    this.row = within(row, names.length);
    this.column = within(column, steps.length);
    this.draw();
  }

  draw() {
    this.box.hidden = hidden.has(this.index);
    if (this.box.hidden) return;
    const {names, steps, updates} = this.run.layers;
    this.cell = Math.max(5, Math.min(14, 600 / names.length));
    const [context, width] = prepare(this.canvas, this.cell * names.length), wide = width / steps.length;
    names.forEach((_, r) => steps.forEach((_, c) => {
      if (updates[r][c] === null) return;
      context.fillStyle = ratioColor(updates[r][c]);
      context.fillRect(c * wide, r * this.cell, wide - 0.5, this.cell - 0.5);
    }));
    context.strokeStyle = color('--text');
    context.lineWidth = 2;
    context.strokeRect(this.column * wide + 1, this.row * this.cell + 1, wide - 2, this.cell - 2);
    const ratio = updates[this.row][this.column];
    this.readout.textContent = visible(`${names[this.row]}, step ${steps[this.column]}: ` + (ratio === null ? 'no update' : `update / weight = 10^${ratio}`));
    this.select.value = this.row;
    this.drawHistogram();
  }

  // Draws the histograms of the weight at all evaluations as pale lines, and the chosen one filled.
  drawHistogram() {
    const all = this.run.layers.histograms[this.row], chosen = all[this.column], height = 150;
    const [context, width] = prepare(this.histogram, height);
    const low = Math.min(...all.filter(Boolean).map(h => h[0])), high = Math.max(...all.filter(Boolean).map(h => h[1]));
    if (!chosen || !(high > low)) {
      context.fillText(chosen ? `all values are ${short(low)}` : 'no finite values', 10, 20);
      return void this.histogram.setAttribute('aria-label', 'no histogram');
    }
    const density = h => h[2].map(count => count / Math.max(h[1] - h[0], (high - low) / 1000) || 0);
    const top = Math.max(...density(chosen)) * 1.1, px = x => 8 + (x - low) / (high - low) * (width - 16);
    const path = h => {
      const heights = density(h), bin = (h[1] - h[0]) / heights.length;
      context.beginPath();
      context.moveTo(px(h[0]), height - 20);
      heights.forEach((d, i) => {
        const y = height - 20 - Math.min(d / top, 1) * (height - 28);
        context.lineTo(px(h[0] + i * bin), y);
        context.lineTo(px(h[0] + (i + 1) * bin), y);
      });
      context.lineTo(px(h[1]), height - 20);
    };
    context.strokeStyle = color('--quiet');
    context.globalAlpha = 0.35;
    for (const h of all) if (h && h !== chosen) { path(h); context.stroke(); }
    context.globalAlpha = 0.75;
    context.fillStyle = runColor(this.index);
    path(chosen);
    context.fill();
    context.globalAlpha = 1;
    context.fillStyle = color('--quiet');
    context.fillText(short(low), 8, height - 6);
    context.textAlign = 'right';
    context.fillText(short(high), width - 8, height - 6);
    this.histogram.setAttribute('aria-label', visible(`Histogram of ${this.run.layers.names[this.row]} after step ${this.run.layers.steps[this.column]}: from ${short(chosen[0])} to ${short(chosen[1])}`));
  }
}

function showLayers() {
  const all = data.runs.map((run, i) => run.layers.steps.length && run.layers.names.length ? new Layers(run, i) : null).filter(Boolean);
  $('layers-section').hidden = !all.length;
  $('layers').replaceChildren(...all.map(layers => layers.box));
  const draw = () => all.forEach(layers => layers.draw());
  onRuns.push(draw);
  draw();
}
