// Attention weights by checkpoint: a slider of steps, and for each run the maps of all heads and the chosen head with
// its tokens.

class Heads {
  constructor(run, index) {
    Object.assign(this, {run, index, layer: 0, head: 0});
    this.box = element('div');
    this.note = element('p');
    this.grid = element('canvas', '', {tabindex: 0, role: 'img'});
    this.readout = element('p', '', {class: 'readout', 'aria-live': 'polite'});
    this.chosen = element('canvas', '', {role: 'img'});
    const details = element('details'), table = element('table');
    details.append(element('summary', 'entropies as a table'), region('entropies of ' + run.name, table));
    details.ontoggle = () => details.open && this.list(table);
    this.box.append(this.note, this.grid, this.readout, this.chosen, details);
    this.grid.addEventListener('pointerdown', event => this.choose(Math.floor(event.offsetY / this.side), Math.floor(event.offsetX / this.side)));
    onArrows(this.grid, (down, right) => this.choose(this.layer + down, this.head + right));
  }

  choose(layer, head) {
    this.layer = within(layer, this.maps.layers);
    this.head = within(head, this.maps.heads);
    this.draw();
  }

  // Shows the newest checkpoint that is not after `step`.
  show(step) {
    const before = this.run.attention.checkpoints.filter(c => c.step <= step);
    this.maps = before[before.length - 1] || this.run.attention.checkpoints[0];
    this.draw();
  }

  draw() {
    this.box.hidden = hidden.has(this.index);
    if (this.box.hidden || !this.maps) return;
    const {layers, heads, targets, sources, allTargets, step, kind} = this.maps, {of, checkpoints} = this.run.attention;
    const left = [of > checkpoints.length && `${of - checkpoints.length} other checkpoints`,
                  allTargets > targets.length && `${allTargets - targets.length} of ${allTargets} tokens`].filter(Boolean);
    this.note.textContent = visible(`${this.run.name}, ${kind === 'cross' ? 'attention to the source ' : ''}after step ${step}` + (left.length ? `; left out: ${left.join(' and ')}` : ''));
    this.side = Math.max(8, Math.min(72, Math.floor((this.box.clientWidth || 600) / heads)));
    const [context] = prepare(this.grid, this.side * layers);
    const size = this.side - 4, square = (layer, head) => [head * this.side + 1, layer * this.side + 1, size, size];
    context.imageSmoothingEnabled = false;
    context.strokeStyle = color('--line');
    for (let l = 0; l < layers; ++l) {
      for (let h = 0; h < heads; ++h) {
        context.drawImage(pixelsOf(this.maps, l, h, runColor(this.index)), ...square(l, h));
        context.strokeRect(...square(l, h));
      }
    }
    context.strokeStyle = color('--text');
    context.lineWidth = 2;
    context.strokeRect(...square(this.layer, this.head));
    this.grid.setAttribute('aria-label', visible(`${this.run.name}: attention weights of ${layers} layers, in rows, and ${heads} heads after step ${step}. Arrow keys choose a head.`));
    this.readout.textContent = `Layer ${this.layer + 1}, head ${this.head + 1}: ${describe(this.maps, this.layer, this.head)}`;
    this.drawChosen(targets, sources);
  }

  drawChosen(targets, sources) {
    const longest = Math.max(...[...targets, ...sources].map(token => shown(token).length));
    const label = 14 + 7 * Math.min(longest, 12), high = 15;
    const [context, width] = prepare(this.chosen, label + high * targets.length + 4);
    const wide = Math.min(22, (width - label - 4) / sources.length);
    drawMap(context, this.maps, this.layer, this.head, runColor(this.index), {left: label, top: label, wide, high});
    context.strokeStyle = color('--line');
    context.strokeRect(label, label, wide * sources.length, high * targets.length);
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
