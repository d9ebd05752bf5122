// Draws the graph and the panel of details, and handles clicks and keys.

const byId = id => document.getElementById(id);
const svg = byId('graph');
const state = {level: data.depth || ALONE, opened: new Map(), chosen: '', zoom: 0};
let view;  // the drawing; undefined while draw() makes a new one

function element(parent, tag, attributes, text = '') {
  const e = document.createElementNS('http://www.w3.org/2000/svg', tag);
  for (const [name, value] of Object.entries(attributes)) e.setAttribute(name, value);
  e.textContent = text;
  return parent.appendChild(e);
}

const plural = (n, word) => `${n} ${word}${n === 1 ? '' : 's'}`;
const begin = (text, max) => text.length <= max ? text : text.slice(0, max - 1) + '…';
const end = (text, max) => text.length <= max ? text : '…' + text.slice(1 - max);
function scaled(x, unit) {
  const [by, letter] = x >= 1e9 ? [1e9, 'G'] : x >= 1e6 ? [1e6, 'M'] : x >= 1e3 ? [1e3, 'k'] : [1, ''];
  return `${x / by >= 100 || by === 1 ? Math.round(x / by) : (x / by).toPrecision(3)} ${letter}${unit}`;
}

function asButton(g, act) {
  g.setAttribute('tabindex', 0);
  g.setAttribute('role', 'button');
  g.addEventListener('click', act);
  g.addEventListener('keydown', e => {
    if (e.key !== 'Enter' && e.key !== ' ') return;
    e.preventDefault();
    act();
  });
}

function drawEdge(e) {
  const width = Math.min(4, Math.max(1, Math.log10(e.bytes + 1) / 2 - 1)).toFixed(1);
  e.path = element(svg, 'path', {
    class: `edge ${e.from.phase}`, d: curve(e), 'stroke-width': width, 'marker-end': `url(#to-${e.from.phase})`});
  const what = `${plural(e.values, 'value')}, ${scaled(e.bytes, 'B')}`;
  element(e.path, 'title', {}, `${e.from.title} → ${e.to.title}: ${what}`);
}

function drawBox(b, maxFlops) {
  const g = b.g = element(svg, 'g', {
    class: `box ${b.phase}${b.key === state.chosen ? ' chosen' : ''}`, transform: `translate(${b.x},${b.y})`});
  element(g, 'rect', {width: b.w, height: b.h, rx: b.phase === 'input' ? b.h / 2 : 6});
  const x = b.phase === 'input' ? 16 : 10;
  element(g, 'text', {x, y: b.alone ? 16 : 19}, b.alone ? begin(b.title, 18) : end(b.title, 19));
  const second = b.alone ? b.nodes[0].types.join(', ') :
                           `${plural(b.nodes.length, 'node')} · ${scaled(b.flops, 'FLOP')}`;
  element(g, 'text', {class: 'small', x, y: b.alone ? 31 : 35}, begin(second, 23));
  if (!b.alone) {
    if (nextLevel(b)) element(g, 'text', {class: 'small', x: b.w - 10, y: 19, 'text-anchor': 'end'}, '▸');
    const fraction = b.flops / maxFlops;
    if (fraction > .005) element(g, 'rect', {class: 'bar', x, y: b.h - 7, width: (b.w - 20) * fraction, height: 3});
  }
  for (const event of ['mouseenter', 'focus']) g.addEventListener(event, () => light(b));
  for (const event of ['mouseleave', 'blur']) g.addEventListener(event, () => light());
  asButton(g, () => unfold(b));
}

function draw() {
  const {boxes, edges} = fold(state.level, state.opened);
  const {order, lanes, frames, width, height} = layout(boxes);
  view = undefined;
  svg.textContent = '';
  const defs = element(svg, 'defs', {});
  for (const phase of new Set(boxes.map(b => b.phase))) {
    const marker = element(defs, 'marker', {
      class: phase, id: `to-${phase}`, viewBox: '0 0 8 8', refX: 6, refY: 4, markerWidth: 7, markerHeight: 7,
      markerUnits: 'userSpaceOnUse', orient: 'auto'});
    element(marker, 'path', {d: 'M0,0L8,4L0,8z'});
  }
  for (const {name, middle} of lanes) {
    if (name === 'input') continue;
    const label = data.stage === 'recorded' ? 'recorded' : name === 'backward' ? 'backward (upwards)' : name;
    element(svg, 'text', {class: 'lane', x: middle, y: 22, 'text-anchor': 'middle'}, label);
  }
  for (const {x, y, w, h, phase} of frames) {
    element(svg, 'rect', {class: `frame ${phase}`, x, y, rx: 8, width: w, height: h});
  }
  edges.forEach(drawEdge);
  for (const f of frames) {
    f.g = element(svg, 'g', {class: 'title'});
    element(f.g, 'text', {x: f.x + 8, y: f.y + 15}, `▾ ${titleOfKey(f.key)}`);
    asButton(f.g, () => refold(f));
  }
  const maxFlops = Math.max(1, ...boxes.map(b => b.flops));
  for (const b of order) drawBox(b, maxFlops);
  view = {boxes, edges, frames, width, height};
  byId('level').textContent = `depth ${state.level === ALONE ? 0 : state.level}`;
  setZoom(state.zoom);
  find();
  light();
}

// Draws again and scrolls so that the box or frame of `key` is where `before` was on the screen.
function drawAround(before, key) {
  const main = svg.parentElement, old = before.getBoundingClientRect();
  draw();
  const now = view.frames.find(f => f.key === key) || view.boxes.find(b => b.key === key);
  const moved = now.g.getBoundingClientRect();
  main.scrollBy(moved.left - old.left, moved.top - old.top);
  now.g.focus({preventScroll: true});
}

function unfold(b) {
  const next = nextLevel(b);
  state.chosen = next || state.chosen === b.key ? '' : b.key;
  if (next) state.opened.set(b.key, next);
  drawAround(b.g, b.key);
  describe(b);
}

function refold(f) {
  const inside = b => b.frames.slice(b.frames.indexOf(f.key));
  for (const key of f.boxes.flatMap(inside)) state.opened.delete(key);
  state.chosen = '';
  drawAround(f.g, f.key);
}

function setLevel(level) {
  Object.assign(state, {level, opened: new Map(), chosen: ''});
  draw();
}

function light(box) {
  if (!view) return;  // an element lost the focus because it is being drawn again
  svg.classList.toggle('lit', !!box);
  for (const e of view.edges) e.path.classList.toggle('on', e.from === box || e.to === box);
  describe(box || view.boxes.find(b => b.key === state.chosen));
}

function setZoom(zoom) {
  const {width, height} = view, main = svg.parentElement;
  const fit = Math.min((main.clientWidth - 16) / width, (main.clientHeight - 8) / height);
  state.zoom = zoom;
  const scale = Math.min(1, Math.max(.8, fit)) * 1.25 ** zoom;
  svg.setAttribute('viewBox', `0 0 ${width} ${height}`);
  svg.setAttribute('width', width * scale);
  svg.setAttribute('height', height * scale);
}

function find() {
  const word = byId('search').value.trim().toLowerCase();
  for (const b of view.boxes) {
    const found = b.nodes.some(n => `${n.op} ${n.phase === 'input' ? n.attrs : n.scope}`.toLowerCase().includes(word));
    b.g.classList.toggle('found', word !== '' && found);
    b.g.classList.toggle('dim', !found);
  }
}

// Fills the panel with the details of a box or, without one, of the whole graph.
function describe(box) {
  const panel = byId('details');
  panel.textContent = '';
  const add = (tag, text, parent = panel) => {
    const e = document.createElement(tag);
    e.textContent = text;
    return parent.appendChild(e);
  };
  const table = rows => {
    const t = add('table', '');
    for (const row of rows) {
      const tr = add('tr', '', t);
      for (const cell of row) add('td', cell, tr);
    }
  };
  const sum = (list, what) => list.reduce((total, x) => total + what(x), 0);
  const own = box ? box.nodes : nodes;
  const parameters = box ? box.parameters : data.sources.filter(s => s.op === 'parameter');
  add('h2', box ? box.title : 'The whole graph');
  add('p', !box ? 'Click a box to unfold it, and the title of a frame to fold it again.' :
                  box.phase + (box.alone && box.nodes[0].scope ? ` at ${box.nodes[0].scope}` : ''));
  table([['nodes', own.length],
         ['operations', scaled(sum(own, n => n.flops), 'FLOP')],
         ['read and written', scaled(sum(own, n => n.bytes), 'B')],
         [box ? 'parameters read' : 'parameters and state', parameters.length],
         ['their elements', scaled(sum(parameters, s => elementsOf(s.type)), '')],
         ['their bytes', scaled(sum(parameters, s => s.bytes), 'B')]]);
  if (!box) {
    add('h3', 'Phases');
    const phases = [...new Set(nodes.map(n => n.phase))].filter(p => p !== 'input');
    table(phases.map(p => [p, scaled(sum(nodes.filter(n => n.phase === p), n => n.flops), 'FLOP')]));
  }
  add('h3', 'Ops');
  const ops = new Map();
  for (const n of own) ops.set(n.op, (ops.get(n.op) || 0) + 1);
  table([...ops].sort((a, b) => b[1] - a[1]));
  if (!box) return;
  for (const [title, mine, other] of [['Reads from', 'to', 'from'], ['Is read by', 'from', 'to']]) {
    const edges = view.edges.filter(e => e[mine].key === box.key && e[mine].part === box.part);
    if (!edges.length) continue;
    add('h3', title);
    table(edges.map(e => [
      `${e[other].title} (${e[other].phase})`, `${plural(e.values, 'value')}, ${scaled(e.bytes, 'B')}`]));
  }
  add('h3', 'Nodes');
  const name = v => sources.get(v)?.name || `%${v}`;
  for (const n of own.slice(0, 200)) {
    const outputs = n.outputs.map(v => `%${v}`).join(', ');
    const line = add('div', `${outputs} = ${n.op}(${n.inputs.map(name).join(', ')}) `);
    line.className = 'node';
    const [scope, group] = [n.scope && ` @ ${n.scope}`, n.group === undefined ? '' : `, in group ${n.group}`];
    add('span', `${n.attrs} : ${n.types.join(', ')}${scope}${group}`, line);
  }
  if (own.length > 200) add('p', `and ${own.length - 200} more`);
}

byId('title').textContent = `weft graph, ${data.stage}`;
for (const phase of ['input', 'recorded', 'forward', 'backward', 'update']) {
  if (!nodes.some(n => n.phase === phase)) continue;
  const item = document.createElement('span'), patch = document.createElement('i');
  patch.className = phase;
  item.append(patch, phase);
  byId('legend').append(item);
}
byId('less').onclick = () => setLevel(state.level === ALONE ? deepest : Math.max(1, state.level - 1));
byId('more').onclick = () => setLevel(state.level >= deepest ? ALONE : state.level + 1);
byId('out').onclick = () => setZoom(state.zoom - 1);
byId('in').onclick = () => setZoom(state.zoom + 1);
byId('fit').onclick = () => setZoom(0);
byId('search').oninput = find;
addEventListener('resize', () => setZoom(state.zoom));
draw();
