// Puts the page together: the table of runs, the charts of all figures, and the configurations.
const hidden = new Set();  // indices of runs that the reader has hidden
const onRuns = [];         // what to draw again if the runs that are shown change, or the colours

// Settings live through a reload of the page. Some browsers keep none for local files.
function keep(settings) {
  try { sessionStorage.setItem('weft-report', JSON.stringify(settings)); } catch { /* the page works without */ }
}
function kept() {
  try { return JSON.parse(sessionStorage.getItem('weft-report')) || {}; } catch { return {}; }
}

const single = data.runs.length === 1;
document.title = $('title').textContent = visible(single ? data.runs[0].name : data.runs.length + ' training runs');
const thinned = Math.max(0, ...data.runs.flatMap(run => Object.values(run.figures).map(f => f.of - f.steps.length)));
const most = Math.max(0, ...data.runs.flatMap(run => Object.values(run.figures).map(f => f.of)));
$('subtitle').textContent = [
  single ? (data.runs[0].command || '') + '.' : '',
  data.runs.some(run => run.running) ? 'Training goes on.' : '',
  thinned ? `Of each curve, at most ${data.points} points are drawn, of up to ${most}: the minimum and the maximum of each interval of steps.` : '',
  data.runs.every(run => run.step < 1) ? 'No training step is recorded yet.' : ''].filter(Boolean).join(' ');

function describeRuns() {
  const best = run => {
    const f = run.figures.val_loss;
    if (!f || !f.values.length) return null;
    const i = f.values.reduce((low, v, j) => v !== null && (f.values[low] === null || v < f.values[low]) ? j : low, 0);
    return `${short(f.values[i])} (step ${f.steps[i]})`;
  };
  const last = (run, key) => run.figures[key] && run.figures[key].values.length ? short(run.figures[key].values[run.figures[key].values.length - 1]) : null;
  const end = curve => curve.values.length ? curve.values[curve.values.length - 1] : null;
  const speed = run => {
    const f = run.figures.tokens_per_second;
    return f && f.values.length ? short(Float64Array.from(f.values).sort()[f.values.length >> 1]) : null;
  };
  fill($('runs'), ['run', 'state', '#steps', '#tokens', '#time', '#training loss', '#validation loss', '#its minimum', '#tokens/s, median', '#skipped'],
       data.runs.map(run => [run.name, run.running ? 'training' : 'not training', Math.max(run.step, 0) + (run.planned ? ' of ' + run.planned : ''),
         short(end(run.tokens)), end(run.seconds) === null ? null : duration(end(run.seconds)),
         run.figures.train_loss && run.figures.train_loss.mean.values.length ? short(run.figures.train_loss.mean.values.at(-1)) : null,
         last(run, 'val_loss'), best(run), speed(run), run.skipped]));
  const unread = data.runs.filter(run => run.unread);
  if (unread.length) $('runs').closest('.scroll').after(element('p', 'Lines that are damaged or out of order were left out: ' + unread.map(run => `${run.unread} of ${run.name}`).join(', ') + '.'));
}

// Returns the curves of a key of metrics.jsonl in all runs.
function curvesOf(key, name, kind, color) {
  return data.runs.flatMap((run, i) => {
    const f = run.figures[key];
    return f ? [{run: i, name: single ? name : `${run.name} ${name}`.trim(), steps: f.steps, values: f.values, kind, color: single ? color : undefined}] : [];
  });
}

function makeCharts() {
  const keys = [...new Set(data.runs.flatMap(run => Object.keys(run.figures)))], done = new Set();
  const of = (key, ...rest) => { done.add(key); return curvesOf(key, ...rest); };
  const means = data.runs.flatMap((run, i) => run.figures.train_loss ? [{run: i, name: single ? 'training' : run.name + ' training',
                                                                          ...run.figures.train_loss.mean, kind: 'line'}] : []);
  new Chart('Loss', `Training: each step pale, the mean of the last ${data.mean_steps} steps strong. Validation: dashed, with dots for evaluations. In nats.`,
            [...of('train_loss', 'each step', 'pale'), ...means, ...of('val_loss', 'validation', 'marks', '--validation'),
             ...of('ema_val_loss', 'validation of averaged weights', 'marks', '--average')], {wide: true, log: true});
  const title = key => (key[0].toUpperCase() + key.slice(1)).replaceAll('_', ' ');
  for (const key of keys.filter(k => k.startsWith('val_') && k !== 'val_loss')) {
    const name = key.slice(4);
    new Chart(title(name), 'On the validation data, at each evaluation.',
              [...of(key, single ? name : '', 'marks', '--validation'), ...of('ema_' + key, 'of averaged weights', 'marks', '--average')]);
  }
  for (const [key, name, note, options] of [
    ['learning_rate', 'Learning rate', 'Of each step, by the schedule.', {zero: true}], ['grad_norm', 'Gradient norm', 'Of all gradients together, before clipping.', {zero: true, log: true}],
    ['tokens_per_second', 'Tokens a second', 'Of training steps, without evaluations.', {zero: true}],
    ['memory', 'Memory', 'Resident bytes of the process.', {zero: true}]]) {
    const curves = of(key, single ? name.toLowerCase() : '', 'line');
    if (curves.length || key !== 'memory') new Chart(name, note, curves, options);
  }
  for (const key of keys.filter(k => !done.has(k))) new Chart(visible(title(key)), '', of(key, single ? key : '', 'line'));
}

function drawAll() {
  charts.forEach(chart => { chart.draw(); chart.list(); });
  onRuns.forEach(draw => draw());
}

function legend() {
  $('legend').replaceChildren(...(single ? [] : data.runs.map((run, i) => {
    const button = element('button', run.name, {'aria-pressed': !hidden.has(i)}), box = document.createElement('i');
    const dash = runDash(i), shade = runColor(i);
    box.style.background = dash.length ? `repeating-linear-gradient(90deg, ${shade} 0 ${dash[0] / 2}px, transparent 0 ${(dash[0] + dash[1]) / 2}px)` : shade;
    button.prepend(box);
    button.onclick = () => {
      if (!hidden.delete(i)) hidden.add(i);
      button.setAttribute('aria-pressed', !hidden.has(i));
      drawAll();
      save();
    };
    return button;
  })));
}

function showConfiguration() {
  const {rows, equal} = data.configuration;
  $('configuration-text').textContent = single ? `${rows.length} keys of config.json.`
      : rows.length ? `The runs differ in ${rows.length} ${rows.length === 1 ? 'key' : 'keys'}; the other ${equal} are equal.` : `All ${equal} keys are equal.`;
  fill($('configuration'), ['key', ...(single ? ['value'] : data.runs.map(run => run.name))], rows.map(row => row.map(v => v === '' ? '""' : v)));
  $('configuration-details').open = !single && rows.length > 0;
}

let save = () => {};
function settings() {
  const before = kept();
  for (const i of before.hidden || []) if (i < data.runs.length) hidden.add(i);
  if (['steps', 'tokens', 'seconds'].includes(before.axis)) $('axis').value = before.axis;
  $('logarithmic').checked = !!before.logarithmic;
  let paused = !!before.paused;
  save = () => keep({hidden: [...hidden], axis: $('axis').value, logarithmic: $('logarithmic').checked, paused,
                     open: [...document.querySelectorAll('details')].map(d => d.open)});
  $('axis').onchange = $('logarithmic').onchange = () => { drawAll(); save(); };
  if (!data.reload_seconds) return () => {};
  const button = $('pause');
  button.hidden = false;
  const name = () => button.textContent = paused ? 'Go on reloading' : 'Pause reloading';
  button.onclick = () => { paused = !paused; name(); save(); };
  name();
  setInterval(() => { if (!paused) { save(); location.reload(); } }, data.reload_seconds * 1000);
  return () => (before.open || []).forEach((open, i) => { const d = document.querySelectorAll('details')[i]; if (d) d.open = open; });
}

const reopen = settings();
describeRuns();
makeCharts();
legend();
showSamples();
showAttention();
showLayers();
showConfiguration();
reopen();
drawAll();
addEventListener('resize', drawAll);
dark.addEventListener('change', () => { legend(); drawAll(); });
