// Chart: curves on a canvas with a cursor, a line that reads the values, and a table of them.

// Prints a number in few characters.
function short(x) {
  if (x === null || x === undefined) return '—';
  const size = Math.abs(x);
  if (size >= 1e15 || (size > 0 && size < 1e-3)) return (+x.toPrecision(3)).toExponential().replace('e+', 'e');
  for (const [unit, letter] of [[1e12, 'T'], [1e9, 'G'], [1e6, 'M'], [1e4, 'k']]) {
    if (size >= unit) return +(x / (letter === 'k' ? 1e3 : unit)).toPrecision(4) + (letter === 'k' ? 'k' : letter);
  }
  return String(+x.toPrecision(5));
}

function duration(seconds) {
  if (seconds < 60) return +seconds.toFixed(seconds < 10 ? 1 : 0) + ' s';
  const s = Math.round(seconds), two = n => String(n).padStart(2, '0');
  return s < 3600 ? Math.floor(s / 60) + ':' + two(s % 60) + ' min' : Math.floor(s / 3600) + ':' + two(Math.floor(s / 60) % 60) + ' h';
}

function region(label, table) {
  const box = element('div', '', {class: 'scroll', tabindex: 0, role: 'region', 'aria-label': visible(label)});
  box.append(table);
  return box;
}

// Each run has a hue. A second and a third round of the hues have dashes.
const hues = [[215, 70], [24, 85], [150, 60], [290, 50], [350, 70], [185, 80], [55, 85], [255, 65]];
const runColor = i => {
  const [hue, saturation] = hues[i % hues.length];
  return `hsl(${hue} ${saturation}% ${dark.matches ? 66 : hue === 55 ? 30 : 40}%)`;
};
const runDash = i => [[], [8, 4], [2, 3]][Math.floor(i / hues.length) % 3];

// The place of a step on the horizontal axis: its number, or the tokens or seconds until then.
function place(run, axis, step) {
  if (axis === 'steps') return step;
  const {steps, values} = run[axis];
  if (!steps.length) return null;
  let low = 0, high = steps.length - 1;
  if (step <= steps[low]) return values[low];
  if (step >= steps[high]) return values[high];
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (steps[middle] <= step) low = middle; else high = middle;
  }
  return values[low] + (values[high] - values[low]) * (step - steps[low]) / (steps[high] - steps[low]);
}
const placeText = {steps: short, tokens: short, seconds: duration};

// Returns at most about `count` round numbers from `low` to `high`.
function ticks(low, high, count) {
  const apart = interval(high - low, count), marks = [];
  for (let i = Math.ceil(low / apart - 1e-9); i * apart <= high + apart * 1e-9 && marks.length < 100; ++i) marks.push(i * apart);
  return marks;
}

// Returns the powers of 10, or, if there are few of them, also 2 and 5 times these.
function logTicks(low, high) {
  const decades = high - low, marks = [];
  const factors = decades > 3 ? [1] : decades > 0.5 ? [1, 2, 5] : null;
  if (!factors) return ticks(10 ** low, 10 ** high, 4).filter(t => t > 0).map(t => [Math.log10(t), t]);
  const every = Math.max(1, Math.ceil(decades / 8));
  for (let power = Math.floor(low); power <= high; power += every) {
    for (const f of factors) marks.push([power + Math.log10(f), f * 10 ** power]);
  }
  return marks.filter(([at]) => at >= low && at <= high);
}

// Returns the range of values to show and how many points are outside. A few extreme points do not flatten the rest.
function range(values) {
  const sorted = Float64Array.from(values).sort(), n = sorted.length;
  if (!n) return {low: 0, high: 1, outside: 0};
  let low = sorted[0], high = sorted[n - 1];
  const at = part => sorted[Math.floor((n - 1) * part)];
  const room = 4 * (at(0.98) - at(0.02)) || (n > 50 ? Math.abs(at(0.5)) * 10 : Infinity);
  if (n >= 20) {
    high = Math.min(high, at(0.98) + room);
    low = Math.max(low, at(0.02) - room);
  }
  let outside = 0;
  for (const value of sorted) outside += value < low || value > high ? 1 : 0;
  if (!(high > low)) {
    const margin = Math.abs(high) * 0.1 || 1;
    return {low: low - margin, high: high + margin, outside};
  }
  return {low, high, outside};
}

const charts = [];
const left = 58, right = 12, top_ = 10, bottom = 24;

class Chart {
  // `curves`: objects {run, name, steps, values, kind}. kind is 'pale', 'line' or 'marks'.
  constructor(title, note, curves, options = {}) {
    Object.assign(this, {title, note, curves, options, cursor: null});
    this.canvas = element('canvas', '', {tabindex: 0, role: 'img'});
    this.readout = element('p', '', {class: 'readout', 'aria-live': 'polite'});
    this.notes = element('p', '');
    this.table = element('table', '');
    this.details = element('details', '');
    this.details.append(element('summary', 'figures as a table'), region(title, this.table));
    const section = element('section', '', {class: options.wide ? 'wide' : ''});
    section.append(element('h2', title), this.notes, this.canvas, this.readout, this.details);
    $('charts').append(section);
    this.canvas.addEventListener('pointermove', event => this.move(this.valueAt(event.offsetX)));
    this.canvas.addEventListener('pointerleave', () => this.move(null));
    this.canvas.addEventListener('keydown', event => {
      const width = this.x[1] - this.x[0], now = this.cursor === null ? this.x[1] : this.cursor;
      const to = {ArrowLeft: now - width / 60, ArrowRight: now + width / 60, Home: this.x[0], End: this.x[1]}[event.key];
      if (event.key === 'Escape') return this.move(null);
      if (to === undefined) return;
      event.preventDefault();
      this.move(Math.min(Math.max(to, this.x[0]), this.x[1]));
    });
    this.details.addEventListener('toggle', () => this.list());
    charts.push(this);
  }

  shown() { return this.curves.filter(curve => !hidden.has(curve.run)); }
  valueAt(pixel) {
    const part = (pixel - left) / (this.canvas.clientWidth - left - right);
    return this.x[0] + Math.min(Math.max(part, 0), 1) * (this.x[1] - this.x[0]);
  }

  draw() {
    const axis = $('axis').value, curves = this.shown();
    const log = $('logarithmic').checked && this.options.log && curves.every(c => c.values.every(v => v === null || v > 0));
    const toY = v => log ? Math.log10(v) : v;
    this.points = curves.map(c => c.steps.map((step, i) => [place(data.runs[c.run], axis, step), c.values[i]]).filter(p => p[0] !== null && p[1] !== null));
    const xs = this.points.flatMap(list => list.length ? [list[0][0], list[list.length - 1][0]] : []);
    this.x = xs.length ? [xs.reduce((a, b) => Math.min(a, b)), xs.reduce((a, b) => Math.max(a, b))] : [0, 1];
    if (!(this.x[1] > this.x[0])) this.x = [this.x[0] - 0.5, this.x[0] + 0.5];
    const all = this.points.flatMap(list => list.map(p => toY(p[1])));
    let {low, high, outside} = range(all);
    if (this.options.zero && !log && low > 0 && low < high * 0.6) low = 0;
    const margin = (high - low) * 0.04;
    this.y = low === 0 ? [0, high + margin] : [low - margin, high + margin];
    const height = this.options.wide ? 320 : 190;
    const [context, width] = prepare(this.canvas, height);
    const px = x => left + (x - this.x[0]) / (this.x[1] - this.x[0]) * (width - left - right);
    const py = v => height - bottom - (toY(v) - this.y[0]) / (this.y[1] - this.y[0]) * (height - bottom - top_);
    context.lineWidth = 1;
    context.strokeStyle = color('--line');
    const line = (x0, y0, x1, y1) => { context.beginPath(); context.moveTo(x0, y0); context.lineTo(x1, y1); context.stroke(); };
    context.textAlign = 'right';
    const marks = log ? logTicks(...this.y) : ticks(...this.y, height / 45).map(t => [t, t]);
    for (const [at, value] of marks) {
      const y = Math.round(height - bottom - (at - this.y[0]) / (this.y[1] - this.y[0]) * (height - bottom - top_)) + 0.5;
      line(left, y, width - right, y);
      context.fillText(short(value), left - 5, y + 4);
    }
    for (const x of ticks(...this.x, Math.max(3, (width - left) / 110))) {
      const text = placeText[axis](Math.abs(x) < 1e-9 ? 0 : x), half = context.measureText(text).width / 2;
      context.textAlign = 'center';
      line(Math.round(px(x)) + 0.5, height - bottom, Math.round(px(x)) + 0.5, height - bottom + 4);
      context.fillText(text, Math.min(Math.max(px(x), left), width - 4 - half), height - 6);
    }
    context.save();
    context.beginPath();
    context.rect(left, top_ - 4, width - left - right + 4, height - bottom - top_ + 8);
    context.clip();
    curves.forEach((curve, i) => {
      const style = curve.color ? color(curve.color) : runColor(curve.run);
      context.strokeStyle = context.fillStyle = style;
      context.globalAlpha = curve.kind === 'pale' ? (dark.matches ? 0.45 : 0.35) : 1;
      context.lineWidth = curve.kind === 'pale' ? 1 : 1.8;
      context.setLineDash(curve.kind === 'marks' ? [3, 3] : runDash(curve.run));
      context.beginPath();
      this.points[i].forEach(([x, v], j) => j ? context.lineTo(px(x), py(v)) : context.moveTo(px(x), py(v)));
      context.stroke();
      context.setLineDash([]);
      const dots = curve.kind === 'marks' && this.points[i].length <= 100 || this.points[i].length < 3;
      if (dots) for (const [x, v] of this.points[i]) { context.beginPath(); context.arc(px(x), py(v), 3, 0, 7); context.fill(); }
    });
    context.globalAlpha = 1;
    if (this.cursor !== null) {
      context.strokeStyle = color('--quiet');
      context.lineWidth = 1;
      line(Math.round(px(this.cursor)) + 0.5, top_, Math.round(px(this.cursor)) + 0.5, height - bottom);
    }
    context.restore();
    if (!all.length) {
      context.textAlign = 'center';
      context.fillText('no figures', width / 2, height / 2);
    }
    this.notes.textContent = [this.note, outside ? `${outside} ${outside === 1 ? 'point is' : 'points are'} outside the chart.` : ''].join(' ');
    const last = curves.filter(c => c.kind !== 'pale' && c.values.length).map(c => `${c.name}: ${short(c.values[c.values.length - 1])} at step ${c.steps[c.steps.length - 1]}`);
    this.canvas.setAttribute('aria-label', visible(`${this.title}. Last figures: ${last.slice(0, 12).join('; ')}. Arrow keys read the values.`));
  }

  move(x) {
    this.cursor = x;
    this.draw();
    if (x === null) return void (this.readout.textContent = '');
    const parts = [];
    this.shown().forEach((curve, i) => {
      const points = this.points[i];
      if (curve.kind === 'pale' || !points.length) return;
      const near = points.reduce((a, b) => Math.abs(b[0] - x) < Math.abs(a[0] - x) ? b : a);
      parts.push(`${curve.name} ${short(near[1])}` + (parts.length && curve.kind !== 'marks' ? '' : ` at ${placeText[$('axis').value](near[0])}`));
    });
    this.readout.textContent = visible(parts.slice(0, 12).join(', ') + (parts.length > 12 ? `, and ${parts.length - 12} more` : ''));
  }

  // Writes the table when it is opened. The rows are steps of evaluations, or steps at equal distances.
  list() {
    if (!this.details.open) return;
    const curves = this.shown().filter(c => c.kind !== 'pale'), evaluated = curves.filter(c => c.kind === 'marks');
    const steps = [...new Set((evaluated.length ? evaluated : curves).flatMap(c => c.steps))].sort((a, b) => a - b);
    const rows = 40, chosen = steps.length <= rows ? steps : Array.from({length: rows}, (_, i) => steps[Math.floor((steps.length - 1) * i / (rows - 1))]);
    fill(this.table, ['#step', ...curves.map(c => '#' + c.name)], chosen.map(step => [step, ...curves.map(c => {
      if (!c.steps.length || step > c.steps[c.steps.length - 1]) return null;
      let i = c.steps.length - 1;
      while (i >= 0 && c.steps[i] > step) --i;
      return i < 0 || (c.kind === 'marks' && c.steps[i] !== step) ? null : short(c.values[i]);
    })]));
  }
}
