// The view of chat, or of plain continuation with a model without a chat template.
const messages = [];  // {role, content, article}; questions and answers take turns
const chats = () => models.chat?.weft.tasks.includes('chat');

function addMessage(role, content) {
  const names = chats() ? {user: 'You', assistant: models.chat.id} : {user: 'Text', assistant: 'Continuation'};
  const article = element('article', '', {class: role}), text = element('div', '', {dir: 'auto'});
  text.append(content);
  article.append(element('h2', names[role]), text);
  $('log').append(article);
  messages.push({role, content, article});
  return messages[messages.length - 1];
}

// Removes the last message, and returns its text.
function removeMessage() {
  const {article, content} = messages.pop();
  article.remove();
  return content;
}

// Shows the answer to the last message as it comes. Its seed is always known, so that every answer can be repeated.
async function answer(signal) {
  const from = performance.now(), seconds = () => `${((performance.now() - from) / 1000).toFixed(2)} s`;
  const chat = chats(), system = $('system').value;
  const body = {model: models.chat.id, seed: Math.floor(Math.random() * 2 ** 31)};
  for (const {id, value} of $('settings').querySelectorAll('input')) if (value) body[id] = Number(value);
  if (chat) body.messages = messages.map(({role, content}) => ({role, content}));
  else body.prompt = messages[messages.length - 1].content;
  if (chat && system) body.messages.unshift({role: 'system', content: system});
  const log = $('log'), message = addMessage('assistant', ''), {article} = message, text = article.lastChild;
  let first = '', end = '';
  article.setAttribute('aria-busy', true);
  log.scrollTop = log.scrollHeight;
  try {
    await stream(chat ? '/v1/chat/completions' : '/v1/completions', body, signal, choice => {
      const piece = chat ? choice.delta?.content : choice.text;
      if (choice.finish_reason === 'length') end = 'ended at the maximum of tokens';
      if (!piece) return;
      first ||= seconds();
      const follow = log.scrollHeight - log.scrollTop - log.clientHeight < 40;
      message.content += piece;
      text.append(piece);
      if (follow) log.scrollTop = log.scrollHeight;
    });
  } catch (error) {
    end = signal.aborted ? 'stopped' : 'broken off';
    if (!message.content) {
      removeMessage();
      $('message').value = removeMessage() + $('message').value;
    }
    throw error;
  } finally {
    article.removeAttribute('aria-busy');
    const notes = [end, `seed ${body.seed}`, first && `first token after ${first}`, seconds()];
    article.append(element('p', notes.filter(Boolean).join(' · ')));
    log.scrollTop = log.scrollHeight;
  }
}

function send() {
  const text = $('message').value, wrong = $('settings').querySelector(':invalid');
  $('settings').open ||= Boolean(wrong);
  wrong?.reportValidity();
  if (wrong || running.chat || !text.trim()) return;
  addMessage('user', text);
  $('message').value = '';
  run('chat', answer);
}

// Enables what is possible now, and names what the chosen model does.
function updateChat() {
  const busy = Boolean(running.chat), wasStop = document.activeElement === $('stop');
  $('stop').disabled = !busy;
  $('regenerate').disabled = $('explain').disabled = $('clear').disabled = busy || !messages.length;
  $('explain').hidden = !able('attention').length;
  $('system-label').hidden = !chats();
  $('message-label').textContent = chats() ? 'Message' : 'Text to continue';
  $('send').textContent = chats() ? 'Send' : 'Continue';
  if (wasStop && !busy) $(messages.length ? 'regenerate' : 'message').focus();
}

onSubmit('chat', send);
$('message').onkeydown = event => {
  if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return;
  event.preventDefault();
  send();
};
$('stop').onclick = () => running.chat.abort();
$('regenerate').onclick = () => {
  removeMessage();
  run('chat', answer);
  $('stop').focus();
};
$('clear').onclick = () => {
  while (messages.length) removeMessage();
  updateChat();
  $('message').focus();
};
$('explain').onclick = () =>
    attend(models.chat, messages.slice(-2).map(({content}) => content).join(chats() ? '\n' : ''));
