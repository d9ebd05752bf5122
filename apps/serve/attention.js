// The view of attention: one head of a model that reads a text, such as the last answer, as a map.
let maps = [];  // of the last reply, as attention_maps.js draws them
let cell = {target: 0, source: 0};

// Returns the maps of a reply of /attention: one, or three of an encoder-decoder.
function mapsOf(reply) {
  const {encoder = reply.tokens, decoder = reply.tokens} = reply.tokens;
  return ['attention', 'encoder', 'decoder', 'cross'].filter(kind => reply[kind]).map(kind => ({
    kind, targets: kind === 'encoder' ? encoder : decoder, sources: kind === 'decoder' ? decoder : encoder,
    layers: reply[kind].length, heads: reply[kind][0].length,
    bytes: Uint8Array.from(reply[kind].flat(3), w => Math.round(255 * Math.sqrt(w)))}));
}

function fillSelect(id, names, chosen) {
  $(id).replaceChildren(...names.map(([name, value]) => element('option', name, {value})));
  $(id).value = chosen;
}

// Lets the user choose a layer and a head. A choice that is still possible stays.
function fillHeads(layer, head, {layers, heads}) {
  const keep = (id, count, other) => $(id).value !== '' && $(id).value < count ? $(id).value : other;
  const numbers = count => Array.from({length: count}, (_, i) => [i + 1, i]);
  fillSelect(layer, numbers(layers), keep(layer, layers, layers - 1));
  fillSelect(head, [['mean', MEAN], ...numbers(heads)], keep(head, heads, MEAN));
}

const chosenMap = () => maps[$('kind').value];
const chosenHead = () => [Number($('layer').value), Number($('head').value)];

// Returns the sizes of the map: the side of a cell, and the space for tokens.
function mapLayout(context, {targets, sources}) {
  context.font = '13px system-ui, "DejaVu Sans", sans-serif';
  const width = tokens => Math.min(120, Math.max(...tokens.map(token => context.measureText(shown(token)).width))) + 10;
  const left = width(targets), side = Math.floor(($('map-box').clientWidth - left - 10) / sources.length);
  return {left, top: width(sources), side: Math.min(Math.max(side, 12), 26)};
}

function drawAttention() {
  const m = chosenMap(), canvas = $('map'), context = canvas.getContext('2d'), scale = devicePixelRatio || 1;
  if (!m || $('attention-view').hidden) return;
  const {left, top, side} = mapLayout(context, m), [layer, head] = chosenHead();
  const wide = side * m.sources.length, high = side * m.targets.length;
  const width = left + wide + 2, height = top + high + 2;
  Object.assign(canvas, {width: width * scale, height: height * scale});
  Object.assign(canvas.style, {width: `${width}px`, height: `${height}px`});
  context.setTransform(scale, 0, 0, scale, 0, 0);
  context.fillStyle = `rgb(${color('--low')})`;
  context.fillRect(left, top, wide, high);
  context.font = `${Math.min(13, side - 1)}px system-ui, "DejaVu Sans", sans-serif`;
  const style = `rgb(${color('--high')})`, place = {left, top, wide: side, high: side};
  drawMap(context, m, layer, head, style, place, cell.target, cell.source);
  context.strokeStyle = color('--other');
  context.lineWidth = 2;
  context.strokeRect(left + cell.source * side, top + cell.target * side, side, side);
  const name = head === MEAN ? 'mean of the heads' : `head ${head + 1}`;
  canvas.setAttribute('aria-label', `Layer ${layer + 1}, ${name}: ${m.targets.length} targets in rows, ` +
      `${m.sources.length} sources in columns. Arrow keys choose a weight.`);
}

function pointAt(target, source) {
  const m = chosenMap();
  cell = {target: within(target, m.targets.length), source: within(source, m.sources.length)};
  const from = shown(m.sources[cell.source]), w = weight(m, ...chosenHead(), cell.target, cell.source);
  $('reading').textContent = `“${shown(m.targets[cell.target])}” takes ${w.toFixed(3)} from “${from}”.`;
  drawAttention();
}

function chooseKind() {
  fillHeads('layer', 'head', chosenMap());
  pointAt(chosenMap().targets.length - 1, 0);
}

async function readAttention(signal) {
  const {id, weft} = models.attention, target = weft.kind === 'transformer' && $('target').value;
  const reply = await request('/attention', {model: id, text: $('attended').value, ...target && {target}}, signal);
  maps = mapsOf(await reply.json());
  fillSelect('kind', maps.map(({kind}, i) => [kind, i]), maps.length - 1);
  updateAttention();
  chooseKind();
}

// Shows the attention with which `model` reads the end of a text.
function attend(model, text) {
  if (model.weft.tasks.includes('attention')) models.attention = model;
  $('attended').value = [...text].slice(-400).join('');
  location.hash = 'attention';
  showView('attention');
  $('show').focus();
  run('attention', readAttention);
}

function updateAttention() {
  $('target-box').hidden = models.attention?.weft.kind !== 'transformer';
  $('attended-box').classList.toggle('whole', $('target-box').hidden);
  $('attention-result').hidden = $('choices').hidden = !maps.length;
  $('kind').parentElement.hidden = maps.length < 2;
}

onSubmit('attention', () => run('attention', readAttention));
$('kind').onchange = chooseKind;
$('layer').onchange = $('head').onchange = () => pointAt(cell.target, cell.source);
onArrows($('map'), (down, right) => pointAt(cell.target + down, cell.source + right));
$('map').onpointermove = $('map').onclick = event => {
  const {left, top, side} = mapLayout($('map').getContext('2d'), chosenMap());
  const x = Math.floor((event.offsetX - left) / side), y = Math.floor((event.offsetY - top) / side);
  if (x >= 0 && y >= 0 && (x !== cell.source || y !== cell.target)) pointAt(y, x);
};
dark.addEventListener('change', drawAttention);
addEventListener('resize', drawAttention);
