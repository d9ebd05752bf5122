// The maps of PageMaps (attention_report.cc), which both pages with attention weights draw. A weight w is the
// byte 255·√w, so that small weights keep their differences.
const MEAN = -1;  // as a head: the mean of all heads
const bytesOf = text => Uint8Array.from(atob(text), c => c.charCodeAt(0));

// Tokens may be white space or have control characters: these are shown as symbols.
const shown = token => token.replace(/[\u0000-\u001f]/g, c => String.fromCharCode(0x2400 + c.charCodeAt(0)))
    .replace(/\u007f/g, '\u2421').replace(/[\u0080-\u009f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff]/g, '\ufffd')
    .replace(/ /g, '\u2423');

function weight(m, layer, head, target, source) {
  m.bytes ??= bytesOf(m.weights);
  const T = m.targets.length, S = m.sources.length;
  const at = h => (m.bytes[((layer * m.heads + h) * T + target) * S + source] / 255) ** 2;
  if (head !== MEAN) return at(head);
  let sum = 0;
  for (let h = 0; h < m.heads; ++h) sum += at(h);
  return sum / m.heads;
}

// Returns a canvas with a pixel for each weight: rows are targets, and columns sources. The greater a weight, the less
// transparent is the colour `style`.
function pixelsOf(m, layer, head, style) {
  const T = m.targets.length, S = m.sources.length, image = new ImageData(S, T);
  for (let i = 0; i < T * S; ++i) image.data[4 * i + 3] = 255 * Math.sqrt(weight(m, layer, head, Math.floor(i / S), i % S));
  const canvas = element('canvas', '', {width: S, height: T}), context = canvas.getContext('2d');
  context.putImageData(image, 0, 0);
  context.globalCompositeOperation = 'source-in';
  context.fillStyle = style;
  context.fillRect(0, 0, S, T);
  return canvas;
}

// Draws a head with cells of `wide` by `high` pixels, and its tokens at the left and above. Marks the tokens of the cell
// (target, source), if it is given.
function drawMap(context, m, layer, head, style, {left, top, wide, high}, target = -1, source = -1) {
  context.imageSmoothingEnabled = false;
  context.drawImage(pixelsOf(m, layer, head, style), left, top, wide * m.sources.length, high * m.targets.length);
  const ink = color('--text'), mark = color('--other');
  context.textBaseline = 'middle';
  context.textAlign = 'right';
  m.targets.forEach((token, t) => {
    context.fillStyle = t === target ? mark : ink;
    context.fillText(shown(token), left - 6, top + (t + .5) * high, left - 8);
  });
  context.textAlign = 'left';
  m.sources.forEach((token, s) => {
    context.save();
    context.translate(left + (s + .5) * wide, top - 6);
    context.rotate(-Math.PI / 2);
    context.fillStyle = s === source ? mark : ink;
    context.fillText(shown(token), 0, 0, top - 8);
    context.restore();
  });
}

// Returns the measures of a head as a text.
function describe(m, layer, head) {
  const [entropy, distance, low, high] = m.measures[layer * m.heads + head];
  return `entropy ${entropy.toFixed(2)} bits, mean distance ${distance.toFixed(2)} tokens, sums of rows ` +
      (low === high ? low.toFixed(3) : `${low.toFixed(3)} to ${high.toFixed(3)}`);
}
