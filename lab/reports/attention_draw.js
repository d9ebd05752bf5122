// Draws the page of attention weights: a grid of all heads, and one head enlarged.
const state = {kind: data.maps.length - 1, layer: 0, head: 0, lines: false, target: 0, source: 0};
const maps = () => data.maps[state.kind];
const high = () => `rgb(${color('--high')})`;  // the colour of the weight 1

function add(parent, tag, text, attributes) {
  const child = element(tag, text, attributes);
  parent.append(child);
  return child;
}

function drawGrid() {
  const m = maps(), grid = $('grid');
  grid.replaceChildren();
  grid.style.gridTemplateColumns = `max-content repeat(${m.heads}, minmax(30px, 110px))`;
  add(grid, 'span', '');
  for (let h = 0; h < m.heads; ++h) add(grid, 'span', `head ${h + 1}`);
  for (let l = 0; l < m.layers; ++l) {
    add(grid, 'span', `layer ${l + 1}`);
    for (let h = 0; h < m.heads; ++h) {
      const text = `layer ${l + 1}, head ${h + 1}: ${describe(m, l, h)}`;
      const button = add(grid, 'button', '', {'aria-label': text, 'title': text, 'data-at': `${l},${h}`});
      const pixels = pixelsOf(m, l, h, high());
      pixels.setAttribute('aria-hidden', 'true');
      button.append(pixels);
      button.onclick = () => {
        choose(l, h);
        $('chosen').scrollIntoView({behavior: 'smooth', block: 'start'});
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

function drawChosenMap() {
  const m = maps(), canvas = $('map'), T = m.targets.length, S = m.sources.length;
  const context = canvas.getContext('2d'), {cell, left, top} = layout(context), scale = devicePixelRatio || 1;
  canvas.width = (left + S * cell + 2) * scale;
  canvas.height = (top + T * cell + 2) * scale;
  canvas.style.width = `${left + S * cell + 2}px`;
  context.setTransform(scale, 0, 0, scale, 0, 0);
  context.fillStyle = `rgb(${color('--low')})`;
  context.fillRect(left, top, S * cell, T * cell);
  context.font = `${Math.min(13, cell + 1)}px system-ui, "DejaVu Sans", sans-serif`;
  drawMap(context, m, state.layer, state.head, high(), {left, top, wide: cell, high: cell}, state.target, state.source);
  context.strokeStyle = color('--other');
  context.lineWidth = 2;
  context.strokeRect(left + state.source * cell, top + state.target * cell, cell, cell);
}

function drawLines() {
  const m = maps(), svg = $('lines'), gap = 22, far = 200, left = 190;
  const create = (tag, attributes, text) => {
    const made = document.createElementNS('http://www.w3.org/2000/svg', tag);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    if (text !== undefined) made.textContent = text;
    svg.append(made);
    return made;
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
  $('beside').hidden = !picture;
  if (!picture) return;
  picture.bytes ??= bytesOf(picture.pixels);
  const canvas = $('picture'), factor = Math.max(1, Math.round(280 / picture.width));
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
  $('patch').textContent = `Orange: the patches from which ${state.target === 0 ? 'the class token' :
      `patch ${m.targets[state.target]}`} takes. The strongest has the weight ${most.toFixed(3)}. Choose a patch, or ` +
      'press Escape for the class token.';
}

function drawAlignment() {
  const m = maps();
  $('alignment').hidden = m.kind !== 'cross';
  if (m.kind !== 'cross') return;
  fill($('pairs'), ['translation', 'source', '#weight'], data.produced.map((token, t) => {
    const source = m.strongest[state.layer][t], seen = source < m.sources.length;
    return [shown(token), seen ? shown(m.sources[source]) : `source ${source + 1}, not shown`,
            seen ? weight(m, state.layer, MEAN, t, source).toFixed(3) : ''];
  }));
}

function drawTable() {
  const m = maps(), headings = ['layer', 'head', 'entropy (bits)', 'mean distance (tokens)', 'smallest sum', 'greatest sum'];
  fill($('table'), headings.map(text => '#' + text), m.measures.map((measures, i) =>
      [Math.floor(i / m.heads) + 1, i % m.heads + 1, ...measures.map(value => value.toFixed(4))]));
}

// Marks the cell of `target` and `source`, and says its weight.
function point(target, source) {
  const m = maps();
  state.target = within(target, m.targets.length);
  state.source = within(source, m.sources.length);
  const w = weight(m, state.layer, state.head, state.target, state.source);
  $('reading').textContent = `“${shown(m.targets[state.target])}” (${state.target + 1}) takes ` +
      `${w.toFixed(3)} from “${shown(m.sources[state.source])}” (${state.source + 1}).`;
  drawChosen();
}

function drawChosen() {
  $('map').hidden = state.lines;
  $('lines').toggleAttribute('hidden', !state.lines);
  if (state.lines) drawLines(); else drawChosenMap();
  drawPicture();
}

function choose(layer, head) {
  const m = maps();
  state.layer = Math.min(layer, m.layers - 1);
  state.head = Math.min(head, m.heads - 1);
  $('layer').value = state.layer;
  $('head').value = state.head;
  $('chosen').textContent = `Layer ${state.layer + 1}, ` +
      (state.head === MEAN ? 'mean of the heads' : `head ${state.head + 1}`);
  $('measures').textContent = state.head === MEAN ? '' : describe(m, state.layer, state.head);
  for (const button of $('grid').querySelectorAll('button')) {
    button.setAttribute('aria-pressed', button.dataset.at === `${state.layer},${state.head}`);
  }
  drawAlignment();
  drawChosen();
}

// Returns the layer and the head whose targets differ most in their sources: the entropy of the mean of its rows, less
// the mean entropy of its rows, is the greatest.
function clearestHead(m) {
  const T = m.targets.length, S = m.sources.length, bits = p => p > 0 ? -p * Math.log2(p) : 0;
  let clearest = [0, 0], most = -Infinity;
  for (let i = 0; i < m.layers * m.heads; ++i) {
    const at = [Math.floor(i / m.heads), i % m.heads], mean = new Float64Array(S);
    let difference = 0;
    for (let j = 0; j < T * S; ++j) {
      const w = weight(m, ...at, Math.floor(j / S), j % S);
      mean[j % S] += w / T;
      difference -= bits(w) / T;
    }
    for (const p of mean) difference += bits(p);
    if (difference > most) [clearest, most] = [at, difference];
  }
  return clearest;
}

function chooseKind(kind) {
  state.kind = kind;
  state.target = state.source = 0;
  for (const [i, button] of [...$('kinds').children].entries()) button.setAttribute('aria-pressed', i === kind);
  const m = maps(), fillSelect = (select, count, extra) => {
    select.replaceChildren();
    if (extra) add(select, 'option', extra, {value: MEAN});
    for (let i = 0; i < count; ++i) add(select, 'option', i + 1, {value: i});
  };
  fillSelect($('layer'), m.layers);
  fillSelect($('head'), m.heads, 'mean');
  const cut = m.targets.length < m.allTargets || m.sources.length < m.allSources;
  $('left').textContent = cut ? `The maps show the first ${m.targets.length} of ${m.allTargets} targets and the ` +
      `first ${m.sources.length} of ${m.allSources} sources. The measures are of all.` : '';
  drawGrid();
  drawTable();
  choose(...clearestHead(m));
}

const FAMILIES = {gpt: 'a GPT', bert: 'a BERT', transformer: 'an encoder-decoder', vit: 'a Vision Transformer'};
$('title').textContent = shown(data.title).replace(/\u2423/g, ' ');
document.title = `Attention: ${data.title}`;
$('subtitle').textContent = `Attention weights of ${FAMILIES[data.family] || data.family} with ` +
    `${data.maps[0].layers} layers and ${data.maps[0].heads} heads${data.maps[0].withoutSpecial ? ', without special tokens' : ''}`;
if (data.maps.length > 1) {
  const names = {encoder: 'encoder', decoder: 'decoder', cross: 'decoder to encoder'};
  data.maps.forEach((m, i) => {
    add($('kinds'), 'button', names[m.kind] || m.kind).onclick = () => chooseKind(i);
  });
}
$('layer').onchange = event => choose(Number(event.target.value), state.head);
$('head').onchange = event => choose(state.layer, Number(event.target.value));
for (const [id, lines] of [['as-map', false], ['as-lines', true]]) {
  $(id).onclick = () => {
    state.lines = lines;
    $('as-map').setAttribute('aria-pressed', !lines);
    $('as-lines').setAttribute('aria-pressed', lines);
    drawChosen();
  };
}
onArrows($('map'), (down, right) => point(state.target + down, state.source + right));
$('map').onpointermove = $('map').onclick = event => {
  const {cell, left, top} = layout($('map').getContext('2d'));
  const target = Math.floor((event.offsetY - top) / cell), source = Math.floor((event.offsetX - left) / cell);
  if (target < 0 || source < 0 || (target === state.target && source === state.source)) return;
  point(target, source);
};
onArrows($('lines'), down => {
  if (down === 0) return;
  state.focus = true;
  point(state.target + down, state.source);
  state.focus = false;
});
$('picture').onclick = event => {
  const {width, patch} = data.picture, factor = width / $('picture').clientWidth;
  const column = Math.floor(event.offsetX * factor / patch), row = Math.floor(event.offsetY * factor / patch);
  point(1 + row * (width / patch) + column, state.source);
};
onArrows($('picture'), (down, right) => {
  const columns = data.picture.width / data.picture.patch;
  point(Math.max(1, state.target + down * columns + right), state.source);
});
$('picture').onkeydown = event => {
  if (event.key === 'Escape') point(0, state.source);
};
dark.addEventListener('change', () => chooseKind(state.kind));
chooseKind(state.kind);
