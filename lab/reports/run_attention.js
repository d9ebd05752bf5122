// Attention weights by checkpoint: a slider of steps, and for each run the maps of all heads and the chosen head with
// its tokens. A weight w is the byte 255·√w.

class Heads {
  constructor(run, index) {
    Object.assign(this, {run, index, layer: 0, head: 0});
    this.box = element('div', '');
    this.note = element('p', '');
    this.grid = element('canvas', '', {tabindex: 0, role: 'img'});
    this.readout = element('p', '', {class: 'readout', 'aria-live': 'polite'});
    this.chosen = element('canvas', '', {role: 'img'});
    const details = element('details', ''), table = element('table', '');
    details.append(element('summary', 'entropies as a table'), region('entropies of ' + run.name, table));
    details.ontoggle = () => details.open && this.list(table);
    this.box.append(this.note, this.grid, this.readout, this.chosen, details);
    this.grid.addEventListener('pointerdown', event => this.choose(Math.floor(event.offsetY / this.side), Math.floor(event.offsetX / this.side)));
    this.grid.addEventListener('keydown', event => {
      const move = {ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1]}[event.key];
      if (!move) return;
      event.preventDefault();
      this.choose(this.layer + move[0], this.head + move[1]);
    });
  }

  choose(layer, head) {
    const within = (x, n) => Math.min(Math.max(x, 0), n - 1);
    this.layer = within(layer, this.maps.layers);
    this.head = within(head, this.maps.heads);
    this.draw();
  }

  // Shows the newest checkpoint that is not after `step`.
  show(step) {
    const before = this.run.attention.checkpoints.filter(c => c.step <= step);
    this.maps = before[before.length - 1] || this.run.attention.checkpoints[0];
    this.maps.bytes = this.maps.bytes || Uint8Array.from(atob(this.maps.weights), c => c.charCodeAt(0));
    this.draw();
  }

  // Draws one head's map: rows are targets, and columns sources.
  drawHead(context, layer, head, x, y, width, height) {
    const {bytes, heads, targets, sources} = this.maps, T = targets.length, S = sources.length;
    const start = (layer * heads + head) * T * S;
    context.fillStyle = runColor(this.index);
    for (let t = 0; t < T; ++t) {
      for (let s = 0; s < S; ++s) {
        context.globalAlpha = bytes[start + t * S + s] / 255;
        context.fillRect(x + s / S * width, y + t / T * height, width / S, height / T);
      }
    }
    context.globalAlpha = 1;
    context.strokeStyle = color('--line');
    context.strokeRect(x, y, width, height);
  }

  draw() {
    this.box.hidden = hidden.has(this.index);
    if (this.box.hidden || !this.maps) return;
    const {layers, heads, targets, sources, allTargets, step, kind, measures} = this.maps, {of, checkpoints} = this.run.attention;
    const left = [of > checkpoints.length && `${of - checkpoints.length} other checkpoints`,
                  allTargets > targets.length && `${allTargets - targets.length} of ${allTargets} tokens`].filter(Boolean);
    this.note.textContent = visible(`${this.run.name}, ${kind === 'cross' ? 'attention to the source ' : ''}after step ${step}` + (left.length ? `; left out: ${left.join(' and ')}` : ''));
    this.side = Math.max(8, Math.min(72, Math.floor((this.box.clientWidth || 600) / heads)));
    const [context] = prepare(this.grid, this.side * layers);
    for (let l = 0; l < layers; ++l) for (let h = 0; h < heads; ++h) this.drawHead(context, l, h, h * this.side + 1, l * this.side + 1, this.side - 4, this.side - 4);
    context.strokeStyle = color('--text');
    context.lineWidth = 2;
    context.strokeRect(this.head * this.side + 1, this.layer * this.side + 1, this.side - 4, this.side - 4);
    this.grid.setAttribute('aria-label', visible(`${this.run.name}: attention weights of ${layers} layers, in rows, and ${heads} heads after step ${step}. Arrow keys choose a head.`));
    const [entropy, distance] = measures[this.layer * heads + this.head];
    this.readout.textContent = `Layer ${this.layer + 1}, head ${this.head + 1}: entropy ${short(entropy)} bits, mean distance ${short(distance)} tokens`;
    this.drawChosen(targets, sources);
  }

  drawChosen(targets, sources) {
    const name = token => visible(token).replaceAll(' ', '␣').slice(0, 12);
    const label = 14 + 7 * Math.max(...[...targets, ...sources].map(token => name(token).length)), row = 15;
    const [context, width] = prepare(this.chosen, label + row * targets.length + 4);
    const cell = Math.min(22, (width - label - 4) / sources.length);
    this.drawHead(context, this.layer, this.head, label, label, cell * sources.length, row * targets.length);
    context.fillStyle = color('--text');
    context.textBaseline = 'middle';
    context.textAlign = 'right';
    targets.forEach((token, t) => context.fillText(name(token), label - 6, label + (t + 0.5) * row));
    context.textAlign = 'left';
    sources.forEach((token, s) => {
      context.save();
      context.translate(label + (s + 0.5) * cell, label - 6);
      context.rotate(-Math.PI / 2);
      context.fillText(name(token), 0, 0);
      context.restore();
    });
    this.chosen.setAttribute('aria-label', `Layer ${this.layer + 1}, head ${this.head + 1}: ${targets.length} targets in rows, ${sources.length} sources in columns`);
  }

  list(table) {
    const {checkpoints} = this.run.attention, {layers, heads} = this.maps;
    fill(table, ['head', ...checkpoints.map(c => '#step ' + c.step)], Array.from({length: layers * heads}, (_, i) =>
        [`layer ${Math.floor(i / heads) + 1}, head ${i % heads + 1}`, ...checkpoints.map(c => short(c.measures[i][0]))]));
  }
}

function showAttention() {
  const runs = data.runs.map((run, i) => [run, i]).filter(([run]) => run.attention);
  $('attention-section').hidden = !runs.length;
  if (!runs.length) return;
  $('attention-text').textContent = visible(runs[0][0].attention.text);
  const problems = runs.filter(([run]) => run.attention.problem || !run.attention.checkpoints.length)
      .map(([run]) => element('p', `${run.name}: ${run.attention.problem || 'no checkpoint is kept yet'}`));
  const all = runs.filter(([run]) => run.attention.checkpoints.length).map(([run, i]) => new Heads(run, i));
  $('attention').replaceChildren(...problems, ...all.map(heads => heads.box));
  $('attention-bar').hidden = !all.length;
  const steps = [...new Set(all.flatMap(heads => heads.run.attention.checkpoints.map(c => c.step)))].sort((a, b) => a - b);
  const slider = $('attention-step');
  slider.max = Math.max(steps.length - 1, 0);
  slider.value = slider.max;
  const show = () => {
    const step = steps[+slider.value];
    slider.setAttribute('aria-valuetext', 'step ' + step);
    $('attention-at').textContent = step;
    all.forEach(heads => heads.show(step));
  };
  slider.oninput = show;
  onRuns.push(show);
  if (all.length) show();
}
