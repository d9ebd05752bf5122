// Requests to the server: its errors, its key, streamed answers and its measures.
let key = '';        // of the server, in memory only
let asking = null;   // the promise of askKey while its dialog is open
const running = {};  // for each view, the AbortController of its task, such as an answer
const showProblem = error => $('problem').textContent = error.message;

// Asks for the server's key. Returns whether the user gave one.
function askKey() {
  const dialog = $('key-dialog');
  $('key-why').textContent = key ? 'The server refused this key.' : 'This server asks for a key.';
  dialog.returnValue = '';
  dialog.showModal();
  return new Promise(resolve => dialog.onclose = () => {
    if (dialog.returnValue) key = $('key').value;
    $('key').value = '';
    resolve(Boolean(dialog.returnValue));
  });
}

// Returns the response to a request, a POST if there is a body. Throws an Error with the server's message.
async function request(path, body, signal) {
  for (;;) {
    const used = key, headers = used ? {Authorization: `Bearer ${used}`} : {}, options = {headers, signal};
    if (body) Object.assign(options, {method: 'POST', body: JSON.stringify(body)});
    if (body) headers['Content-Type'] = 'application/json';
    const response = await fetch(path, options).catch(() => { throw Error('The server does not answer.'); });
    if (response.ok) return response;
    if (response.status === 401) {
      if (key !== used || await (asking ??= askKey().finally(() => asking = null))) continue;
    }
    const status = `${response.status} ${response.statusText}`, wait = response.headers.get('Retry-After');
    const problem = await response.json().then(json => json.error.message, () => status);
    throw Error(problem + (wait ? ` Try again in ${wait} s.` : ''));
  }
}

// Calls `take` with each choice of a streamed answer.
async function stream(path, body, signal, take) {
  const response = await request(path, {...body, stream: true}, signal);
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  for (let rest = '';;) {
    const {done, value} = await reader.read();
    if (done) throw Error('The connection ended before the answer did.');
    const lines = (rest + value).split(/\r?\n/);
    rest = lines.pop();
    for (const line of lines) {
      if (!line.startsWith('data:')) continue;
      const text = line.slice(5).trim();
      if (text === '[DONE]') return;
      const event = JSON.parse(text);
      if (event.error) throw Error(event.error.message);
      event.choices.forEach(take);
    }
  }
}

// Runs the task of a view in place of the one that may still run. Shows its error, unless the user stopped it.
async function run(view, task) {
  running[view]?.abort();
  const {signal} = running[view] = new AbortController();
  $('problem').textContent = '';
  $(`${view}-view`).setAttribute('aria-busy', true);
  updateChat();
  try {
    await task(signal);
  } catch (error) {
    if (!signal.aborted) showProblem(error);
  }
  if (running[view]?.signal !== signal) return;
  delete running[view];
  $(`${view}-view`).removeAttribute('aria-busy');
  updateChat();
}

function onSubmit(view, act) {
  $(`${view}-form`).onsubmit = event => {
    event.preventDefault();
    act();
  };
}

// Shows tokens a second and memory below the page, every two seconds while the page is visible. `before` has the time
// and the number of tokens of the previous update.
async function watch(before) {
  let now;
  const footer = document.querySelector('footer');
  try {
    if (document.hidden) return;
    const text = await (await request('/metrics')).text(), sums = {};
    for (const [, name, value] of text.matchAll(/^(\w+)(?:\{.*\})? (\S+)/gm)) {
      sums[name] = (sums[name] || 0) + Number(value);
    }
    const sum = (name, digits = 0) => (sums[name] || 0).toFixed(digits);
    now = {seconds: performance.now() / 1000, tokens: sums.weft_tokens_total};
    const rate = before && (now.tokens - before.tokens) / (now.seconds - before.seconds);
    footer.textContent = (rate >= 0 ? `${rate.toFixed(1)} tokens/s · ` : '') +
        `${(sums.process_resident_memory_bytes / 2 ** 20).toFixed(0)} MiB of memory · ` +
        `${sum('weft_pages_used')} of ${sum('weft_pages')} pages · ` +
        `${sum('weft_texts_running')}\u00a0running · ${sum('weft_queue_length')}\u00a0waiting`;
  } catch (error) {
    footer.textContent = error.message;
  } finally {
    setTimeout(watch, 2000, now);
  }
}
