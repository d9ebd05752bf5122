// Draws the page of attention weights. AttentionMapsForPage in attention_report.h describes `data.maps`.
'use strict';
const data = JSON.parse(document.getElementById('data').textContent);
const byId = id => document.getElementById(id);
const add = (parent, tag, text, attributes = {}) => {
  const element = document.createElement(tag);
  if (text !== undefined) element.textContent = text;
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  parent.append(element);
  return element;
};
const bytesOf = text => Uint8Array.from(atob(text), c => c.charCodeAt(0));
for (const maps of data.maps) maps.bytes = bytesOf(maps.weights);
const state = {kind: data.maps.length - 1, layer: 0, head: 0, lines: false, target: 0, source: 0};
const MEAN = -1;  // as a head: the mean of all heads

const maps = () => data.maps[state.kind];
// Tokens may be white space or have control characters: these are shown as symbols.
const shown = token => token.replace(/[\u0000-\u001f]/g, c => String.fromCharCode(0x2400 + c.charCodeAt(0)))
    .replace(/\u007f/g, '\u2421').replace(/[\u0080-\u009f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff]/g, '\ufffd')
    .replace(/ /g, '\u2423');
const square = byte => (byte / 255) ** 2;

function weight(m, layer, head, target, source) {
  const T = m.targets.length, S = m.sources.length;
  const at = h => square(m.bytes[((layer * m.heads + h) * T + target) * S + source]);
  if (head !== MEAN) return at(head);
  let sum = 0;
  for (let h = 0; h < m.heads; ++h) sum += at(h);
  return sum / m.heads;
}

const rgb = name => getComputedStyle(document.documentElement).getPropertyValue(name).split(',').map(Number);
function colours() {
  const low = rgb('--low'), high = rgb('--high');
  return w => low.map((l, i) => Math.round(l + (high[i] - l) * Math.sqrt(w)));
}

function drawPixels(canvas, m, layer, head) {
  const T = m.targets.length, S = m.sources.length, colour = colours();
  canvas.width = S;
  canvas.height = T;
  const image = new ImageData(S, T);
  for (let t = 0; t < T; ++t) {
    for (let s = 0; s < S; ++s) {
      const [r, g, b] = colour(weight(m, layer, head, t, s)), at = 4 * (t * S + s);
      image.data.set([r, g, b, 255], at);
    }
  }
  canvas.getContext('2d').putImageData(image, 0, 0);
}

const measuresOf = (m, layer, head) => m.measures[layer * m.heads + head];
const describe = (m, layer, head) => {
  const [entropy, distance, low, high] = measuresOf(m, layer, head);
  return `entropy ${entropy.toFixed(2)} bits, mean distance ${distance.toFixed(2)} tokens, sums of rows ` +
      (low === high ? low.toFixed(3) : `${low.toFixed(3)} to ${high.toFixed(3)}`);
};

function drawGrid() {
  const m = maps(), grid = byId('grid');
  grid.replaceChildren();
  grid.style.gridTemplateColumns = `max-content repeat(${m.heads}, minmax(30px, 110px))`;
  add(grid, 'span', '');
  for (let h = 0; h < m.heads; ++h) add(grid, 'span', `head ${h + 1}`);
  for (let l = 0; l < m.layers; ++l) {
    add(grid, 'span', `layer ${l + 1}`);
    for (let h = 0; h < m.heads; ++h) {
      const text = `layer ${l + 1}, head ${h + 1}: ${describe(m, l, h)}`;
      const button = add(grid, 'button', undefined, {'aria-label': text, 'title': text, 'data-at': `${l},${h}`});
      drawPixels(add(button, 'canvas', undefined, {'aria-hidden': 'true'}), m, l, h);
      button.onclick = () => {
        choose(l, h);
        byId('chosen').scrollIntoView({behavior: 'smooth', block: 'start'});
      };
    }
  }
}

// Sizes of the enlarged map: a cell, and the space for tokens.
function layout(context) {
  const m = maps();
  context.font = '13px system-ui, "DejaVu Sans", sans-serif';
  const width = tokens => Math.min(170, Math.max(...tokens.map(t => context.measureText(shown(t)).width))) + 10;
  const cell = Math.max(9, Math.min(30, Math.floor(760 / Math.max(m.targets.length, m.sources.length))));
  return {cell, left: width(m.targets), top: width(m.sources)};
}

function drawMap() {
  const m = maps(), canvas = byId('map'), T = m.targets.length, S = m.sources.length;
  const context = canvas.getContext('2d'), {cell, left, top} = layout(context), scale = devicePixelRatio || 1;
  canvas.width = (left + S * cell + 2) * scale;
  canvas.height = (top + T * cell + 2) * scale;
  canvas.style.width = `${left + S * cell + 2}px`;
  context.setTransform(scale, 0, 0, scale, 0, 0);
  const style = getComputedStyle(document.body), colour = colours();
  const ink = style.color, mark = style.getPropertyValue('--other');
  context.font = `${Math.min(13, cell + 1)}px system-ui, "DejaVu Sans", sans-serif`;
  context.textBaseline = 'middle';
  for (let t = 0; t < T; ++t) {
    for (let s = 0; s < S; ++s) {
      context.fillStyle = `rgb(${colour(weight(m, state.layer, state.head, t, s))})`;
      context.fillRect(left + s * cell, top + t * cell, cell, cell);
    }
    context.fillStyle = t === state.target ? mark : ink;
    context.textAlign = 'right';
    context.fillText(shown(m.targets[t]), left - 6, top + (t + .5) * cell, left - 8);
  }
  context.textAlign = 'left';
  for (let s = 0; s < S; ++s) {
    context.save();
    context.translate(left + (s + .5) * cell, top - 6);
    context.rotate(-Math.PI / 2);
    context.fillStyle = s === state.source ? mark : ink;
    context.fillText(shown(m.sources[s]), 0, 0, top - 8);
    context.restore();
  }
  context.strokeStyle = mark;
  context.lineWidth = 2;
  context.strokeRect(left + state.source * cell, top + state.target * cell, cell, cell);
}

function drawLines() {
  const m = maps(), svg = byId('lines'), gap = 22, far = 200, left = 190;
  const create = (tag, attributes, text) => {
    const element = document.createElementNS('http://www.w3.org/2000/svg', tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    if (text !== undefined) element.textContent = text;
    svg.append(element);
    return element;
  };
  svg.replaceChildren();
  svg.setAttribute('width', left * 2 + far);
  svg.setAttribute('height', gap * Math.max(m.targets.length, m.sources.length) + 10);
  m.targets.forEach((_, t) => m.sources.forEach((_, s) => {
    const w = weight(m, state.layer, state.head, t, s);
    if (w < 0.02) return;
    const strength = state.target === t ? Math.sqrt(w) : 0.35 * w;
    create('line', {x1: left, y1: 16 + t * gap, x2: left + far, y2: 16 + s * gap, 'stroke-opacity': strength,
                    'stroke-width': state.target === t ? 1 + 3 * w : 1});
  }));
  const cut = token => shown(token).slice(0, 22);
  m.targets.forEach((token, t) => {
    const chosen = t === state.target;
    const text = create('text', {x: left - 6, y: 20 + t * gap, 'text-anchor': 'end', tabindex: 0, role: 'button',
                                 'class': chosen ? '' : 'dim', 'font-weight': chosen ? 700 : 400}, cut(token));
    const take = () => {
      if (state.target !== t) point(t, state.source);
    };
    text.onclick = text.onfocus = take;
    text.onpointerenter = take;
    if (chosen && state.focus) text.focus();
  });
  m.sources.forEach((token, s) => create('text', {x: left + far + 6, y: 20 + s * gap}, cut(token)));
}

function drawPicture() {
  const picture = data.picture, m = maps();
  byId('beside').hidden = !picture;
  if (!picture) return;
  picture.bytes ??= bytesOf(picture.pixels);
  const canvas = byId('picture'), factor = Math.max(1, Math.round(280 / picture.width));
  canvas.width = picture.width * factor;
  canvas.height = picture.height * factor;
  const context = canvas.getContext('2d'), columns = picture.width / picture.patch, size = picture.patch * factor;
  let most = 1e-9;
  for (let s = 1; s < m.sources.length; ++s) most = Math.max(most, weight(m, state.layer, state.head, state.target, s));
  for (let y = 0; y < picture.height; ++y) {
    for (let x = 0; x < picture.width; ++x) {
      const grey = picture.bytes[y * picture.width + x];
      context.fillStyle = `rgb(${grey}, ${grey}, ${grey})`;
      context.fillRect(x * factor, y * factor, factor, factor);
    }
  }
  for (let s = 1; s < m.sources.length; ++s) {
    const x = (s - 1) % columns * size, y = Math.floor((s - 1) / columns) * size;
    context.fillStyle = `rgba(255, 120, 0, ${0.75 * weight(m, state.layer, state.head, state.target, s) / most})`;
    context.fillRect(x, y, size, size);
    if (s !== state.target) continue;
    context.strokeStyle = '#00d0ff';
    context.lineWidth = 2;
    context.strokeRect(x + 1, y + 1, size - 2, size - 2);
  }
  byId('patch').textContent = `Orange: the patches from which ${state.target === 0 ? 'the class token' :
      `patch ${m.targets[state.target]}`} takes. The strongest has the weight ${most.toFixed(3)}. Choose a patch, or ` +
      'press Escape for the class token.';
}

function drawAlignment() {
  const m = maps();
  byId('alignment').hidden = m.kind !== 'cross';
  if (m.kind !== 'cross') return;
  const table = byId('pairs');
  table.replaceChildren();
  const head = add(table, 'tr');
  for (const name of ['translation', 'source', 'weight']) add(head, 'th', name, {scope: 'col'});
  data.produced.forEach((token, t) => {
    const row = add(table, 'tr'), source = m.strongest[state.layer][t];
    add(row, 'td', shown(token));
    add(row, 'td', source < m.sources.length ? shown(m.sources[source]) : `source ${source + 1}, not shown`);
    add(row, 'td', source < m.sources.length ? weight(m, state.layer, MEAN, t, source).toFixed(3) : '', {'class': 'n'});
  });
}

function drawTable() {
  const m = maps(), table = byId('table');
  table.replaceChildren();
  const head = add(table, 'tr');
  for (const name of ['layer', 'head', 'entropy (bits)', 'mean distance (tokens)', 'smallest sum', 'greatest sum']) {
    add(head, 'th', name, {scope: 'col', 'class': 'n'});
  }
  for (let l = 0; l < m.layers; ++l) {
    for (let h = 0; h < m.heads; ++h) {
      const row = add(table, 'tr');
      for (const value of [l + 1, h + 1]) add(row, 'td', value, {'class': 'n'});
      for (const value of measuresOf(m, l, h)) add(row, 'td', value.toFixed(4), {'class': 'n'});
    }
  }
}

// Marks the cell of `target` and `source`, and says its weight.
function point(target, source) {
  const m = maps();
  state.target = Math.max(0, Math.min(m.targets.length - 1, target));
  state.source = Math.max(0, Math.min(m.sources.length - 1, source));
  const w = weight(m, state.layer, state.head, state.target, state.source);
  byId('reading').textContent = `“${shown(m.targets[state.target])}” (${state.target + 1}) takes ` +
      `${w.toFixed(3)} from “${shown(m.sources[state.source])}” (${state.source + 1}).`;
  drawChosen();
}

function drawChosen() {
  byId('map').hidden = state.lines;
  byId('lines').toggleAttribute('hidden', !state.lines);
  if (state.lines) drawLines(); else drawMap();
  drawPicture();
}

function choose(layer, head) {
  const m = maps();
  state.layer = Math.min(layer, m.layers - 1);
  state.head = Math.min(head, m.heads - 1);
  byId('layer').value = state.layer;
  byId('head').value = state.head;
  byId('chosen').textContent = `Layer ${state.layer + 1}, ` +
      (state.head === MEAN ? 'mean of the heads' : `head ${state.head + 1}`);
  byId('measures').textContent = state.head === MEAN ? '' : describe(m, state.layer, state.head);
  for (const button of byId('grid').querySelectorAll('button')) {
    button.setAttribute('aria-pressed', button.dataset.at === `${state.layer},${state.head}`);
  }
  drawAlignment();
  drawChosen();
}

function chooseKind(kind) {
  state.kind = kind;
  state.target = state.source = 0;
  for (const [i, button] of [...byId('kinds').children].entries()) button.setAttribute('aria-pressed', i === kind);
  const m = maps(), fill = (select, count, extra) => {
    select.replaceChildren();
    if (extra) add(select, 'option', extra, {value: MEAN});
    for (let i = 0; i < count; ++i) add(select, 'option', i + 1, {value: i});
  };
  fill(byId('layer'), m.layers);
  fill(byId('head'), m.heads, 'mean');
  const cut = m.targets.length < m.allTargets || m.sources.length < m.allSources;
  byId('left').textContent = cut ? `The maps show the first ${m.targets.length} of ${m.allTargets} targets and the ` +
      `first ${m.sources.length} of ${m.allSources} sources. The measures are of all.` : '';
  drawGrid();
  drawTable();
  choose(m.layers - 1, Math.min(state.head, m.heads - 1));
}

const FAMILIES = {gpt: 'a GPT', bert: 'a BERT', transformer: 'an encoder-decoder', vit: 'a Vision Transformer'};
byId('title').textContent = shown(data.title).replace(/\u2423/g, ' ');
document.title = `Attention: ${data.title}`;
byId('subtitle').textContent = `Attention weights of ${FAMILIES[data.family] || data.family} with ` +
    `${data.maps[0].layers} layers and ${data.maps[0].heads} heads`;
if (data.maps.length > 1) {
  const names = {encoder: 'encoder', decoder: 'decoder', cross: 'decoder to encoder'};
  data.maps.forEach((m, i) => {
    add(byId('kinds'), 'button', names[m.kind] || m.kind).onclick = () => chooseKind(i);
  });
}
byId('layer').onchange = event => choose(Number(event.target.value), state.head);
byId('head').onchange = event => choose(state.layer, Number(event.target.value));
for (const [id, lines] of [['as-map', false], ['as-lines', true]]) {
  byId(id).onclick = () => {
    state.lines = lines;
    byId('as-map').setAttribute('aria-pressed', !lines);
    byId('as-lines').setAttribute('aria-pressed', lines);
    drawChosen();
  };
}
const MOVES = {ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1]};
byId('map').onkeydown = event => {
  const move = MOVES[event.key];
  if (!move) return;
  event.preventDefault();
  point(state.target + move[0], state.source + move[1]);
};
byId('map').onpointermove = byId('map').onclick = event => {
  const {cell, left, top} = layout(byId('map').getContext('2d'));
  const target = Math.floor((event.offsetY - top) / cell), source = Math.floor((event.offsetX - left) / cell);
  if (target < 0 || source < 0 || (target === state.target && source === state.source)) return;
  point(target, source);
};
byId('lines').onkeydown = event => {
  const move = MOVES[event.key];
  if (!move || move[0] === 0) return;
  event.preventDefault();
  state.focus = true;
  point(state.target + move[0], state.source);
  state.focus = false;
};
byId('picture').onclick = event => {
  const {width, patch} = data.picture, factor = width / byId('picture').clientWidth;
  const column = Math.floor(event.offsetX * factor / patch), row = Math.floor(event.offsetY * factor / patch);
  point(1 + row * (width / patch) + column, state.source);
};
byId('picture').onkeydown = event => {
  const move = MOVES[event.key], columns = data.picture.width / data.picture.patch;
  if (event.key === 'Escape') point(0, state.source);
  if (!move) return;
  event.preventDefault();
  point(Math.max(1, state.target + move[0] * columns + move[1]), state.source);
};
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => chooseKind(state.kind));
chooseKind(state.kind);
