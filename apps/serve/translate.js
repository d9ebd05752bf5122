// The views of translation, where a word of the translation shows from which words of the source it comes, and of
// classification.
let align = () => {};  // shows the sources of the word that was chosen last

// Returns for each piece of a text the indices of its tokens. Tokens may have marks of word boundaries, or stand for
// single bytes, such as <0xE6>. Those that are not in the text, such as </s>, belong to no piece.
function tokensOf(pieces, tokens) {
  const bytes = text => String.fromCharCode(...new TextEncoder().encode(text.toLowerCase().replace(/\s/g, '')));
  const all = pieces.map(bytes), owners = all.flatMap((piece, i) => Array(piece.length).fill(i)), text = all.join('');
  const found = pieces.map(() => []);
  let at = 0;
  tokens.forEach((token, t) => {
    const plain = bytes(token.replace(/[▁Ġ]|^##|@@$/g, ''));
    const raw = plain.replace(/<0x(..)>/g, (_, hex) => String.fromCharCode(`0x${hex}`)), begin = text.indexOf(raw, at);
    if (!raw || begin < 0 || begin > at + 24) return;  // 24 bytes: an unknown word before it, but no later repetition
    at = begin + raw.length;
    for (const piece of new Set(owners.slice(begin, at))) found[piece].push(t);
  });
  return found;
}

// Returns the pieces of a text (words, punctuation and white space), their nodes, and the element that has them.
function wordsOf(text, tag, label) {
  const pieces = [...new Intl.Segmenter(undefined, {granularity: 'word'}).segment(text)].map(({segment}) => segment);
  const words = pieces.map(piece => piece.trim() ? element(tag, piece, {class: 'word'}) : piece);
  const box = element('div', '', {dir: 'auto', role: 'group', 'aria-label': label});
  box.append(...words);
  return {box, pieces, words};
}

// Adds a source and its translation. Attention is requested when a word of the pair is chosen.
function addPair(model, pair) {
  const item = element('li', '', {class: 'pair'}), note = `log-probability ${pair.log_probability.toFixed(2)}`;
  const attends = model.weft.tasks.includes('attention'), from = wordsOf(pair.source, 'span', 'Source');
  const to = wordsOf(pair.text, attends ? 'button' : 'span', 'Translation');
  const buttons = [...to.box.querySelectorAll('button')];
  let loaded = null;  // the promise of the pair's attention
  const load = async () => {
    const reply = await request('/attention', {model: model.id, text: pair.source, target: pair.text});
    const cross = mapsOf(await reply.json()).find(({kind}) => kind === 'cross');
    fillHeads('align-layer', 'align-head', cross);
    $('alignment').hidden = false;
    return {cross, sources: tokensOf(from.pieces, cross.sources), targets: tokensOf(to.pieces, cross.targets)};
  };
  const show = async index => {
    const mine = align, {cross, sources, targets} = await (loaded ??= load());
    if (mine !== align) return;
    // The row before a token's own produces it.
    const rows = targets[index].map(t => t - 1).filter(t => t >= 0);
    const at = [$('align-layer').value, $('align-head').value].map(Number);
    const sum = (list, value) => list.reduce((total, i) => total + value(i), 0);
    const weights = sources.map(tokens => sum(tokens, s => sum(rows, t => weight(cross, ...at, t, s) / rows.length)));
    const strong = [...weights.keys()].filter(i => weights[i] >= .05).sort((i, j) => weights[j] - weights[i]);
    for (const word of $('pairs').querySelectorAll('span.word')) {
      const i = from.words.indexOf(word);
      word.style.setProperty('--weight', weights[i] || 0);
      word.classList.toggle('strongest', i >= 0 && i === strong[0]);
    }
    $('sources').textContent = `“${to.pieces[index]}” ← ` +
        (strong.map(i => `“${from.pieces[i]}” ${weights[i].toFixed(2)}`).join(', ') || 'no word with at least 0.05');
  };
  const choose = button => {
    for (const word of $('pairs').querySelectorAll('button.word')) word.classList.toggle('chosen', word === button);
    for (const other of buttons) other.tabIndex = other === button ? 0 : -1;
    align = () => show(to.words.indexOf(button)).catch(showProblem);
    align();
  };
  buttons.forEach((button, i) => {
    button.tabIndex = i ? -1 : 0;
    button.onfocus = button.onpointerenter = () => choose(button);
  });
  onArrows(to.box, (down, right) =>
      buttons[within(buttons.indexOf(document.activeElement) + down + right, buttons.length)].focus());
  item.append(from.box, to.box, element('p', note));
  $('pairs').append(item);
  if (buttons.length && !item.previousSibling) choose(buttons[0]);
}

onSubmit('translate', () => run('translate', async signal => {
  const model = models.translate, text = $('source').value.trimEnd(), beam = Number($('beam').value);
  const {translations} = await (await request('/translate', {model: model.id, text, beam}, signal)).json();
  $('pairs').replaceChildren();
  $('sources').textContent = '';
  for (const translation of translations) addPair(model, translation);
}));
$('align-layer').onchange = $('align-head').onchange = () => align();

onSubmit('classify', () => run('classify', async signal => {
  const reply = await request('/v1/classify', {model: models.classify.id, input: $('classified').value}, signal);
  const result = (await reply.json()).results[0];
  const labels = result.labels ||  // each word has the best of its own; a word without tokens has none
      result.words.filter(({labels}) => labels.length)
          .map(({word, labels}) => ({label: `${word}: ${labels[0].label}`, score: labels[0].score}));
  fill($('labels'), ['~Label', '#Score', ''], labels.map(({label, score}) => [label, score.toFixed(3), '']));
  labels.forEach(({label, score}, i) =>
      $('labels').rows[i + 1].cells[2].append(element('meter', '', {value: score, 'aria-label': label})));
}));
