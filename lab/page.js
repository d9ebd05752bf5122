// Small functions that all pages of figures share: the data, elements, colours, canvases, tables and keys.
const data = JSON.parse(document.getElementById('data').textContent);
const $ = id => document.getElementById(id);
const dark = matchMedia('(prefers-color-scheme: dark)');
const color = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

// Makes characters visible that a browser would not show, or that turn the direction of text. Of a text with several
// lines, keeps the ends of lines.
const visible = (text, lines) => String(text).replace(/[\u0000-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g,
    c => lines && (c === '\n' || c === '\t') ? c : '\\u' + c.charCodeAt(0).toString(16).padStart(4, '0'));

function element(tag, text = '', attributes = {}) {
  const made = document.createElement(tag);
  made.textContent = visible(text, tag === 'pre');
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  return made;
}

// Makes the canvas as wide as its place, and returns its context and width. Lengths are in the page's pixels.
function prepare(canvas, height) {
  const width = canvas.clientWidth, scale = devicePixelRatio || 1;
  Object.assign(canvas, {width: width * scale, height: height * scale});
  canvas.style.height = height + 'px';
  const context = canvas.getContext('2d');
  context.scale(scale, scale);
  context.font = '11px system-ui, "DejaVu Sans", sans-serif';
  context.fillStyle = color('--quiet');
  return [context, width];
}

// Returns the distance between round numbers, of which at most about `count` are in a range of length `length`.
function interval(length, count) {
  const rough = length / count, power = 10 ** Math.floor(Math.log10(rough));
  return [1, 2, 5, 10].map(m => m * power).find(s => s >= rough);
}

// Fills a table. A heading that begins with '#' is of a column of numbers, and one with '~' of texts that may wrap. null
// is a missing value.
function fill(table, headings, rows) {
  const kinds = headings.map(text => ({'#': 'n', '~': 'wide'})[text[0]] || '');
  const head = element('tr');
  headings.forEach((text, i) => head.append(element('th', text.replace(/^[#~]/, ''), {scope: 'col', class: kinds[i]})));
  table.replaceChildren(head, ...rows.map(row => {
    const line = element('tr');
    row.forEach((text, i) => line.append(element('td', text === null ? '—' : text, {class: kinds[i] + (text === null ? ' missing' : '')})));
    return line;
  }));
}

// Calls `move` with the rows and columns by which an arrow key moves, while `target` has the focus.
function onArrows(target, move) {
  target.addEventListener('keydown', event => {
    const by = {ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1]}[event.key];
    if (!by) return;
    event.preventDefault();
    move(...by);
  });
}
const within = (x, n) => Math.min(Math.max(x, 0), n - 1);
