// The views for which the server has a model, and the choice of a model in each.
const VIEWS = ['chat', 'attention', 'translate', 'classify'];  // and tasks of models; 'chat' also continues texts
const models = {};  // the chosen model of each view
let served = [];    // all models

// Returns the models that a view can use.
const able = view => served.filter(({weft: {tasks}}) =>
    tasks.includes(view) || view === 'chat' && tasks.includes('completions'));

function showView(name) {
  for (const view of VIEWS) $(`${view}-view`).hidden = view !== name;
  for (const link of document.querySelectorAll('nav a')) {
    link.hidden = !able(link.hash.slice(1)).length;
    link.ariaCurrent = link.hash === `#${name}` ? 'page' : null;
  }
  fillSelect('model', able(name).map(({id}) => [id, id]), models[name].id);
  $('problem').textContent = '';
  document.title = `${$(`${name}-view`).getAttribute('aria-label')} – Weft`;
  updateChat();
  updateAttention();
  drawAttention();
}

async function start() {
  served = (await (await request('/v1/models')).json()).data.filter(model => model.weft);
  const views = VIEWS.filter(view => able(view).length);
  if (!views.length) throw Error('The server has no model that chats, translates, classifies or shows attention.');
  for (const view of views) models[view] = able(view)[0];
  const asked = () => views.find(view => location.hash === `#${view}`) || views[0];
  onhashchange = () => showView(asked());
  $('model').onchange = event => {
    models[asked()] = served.find(({id}) => id === event.target.value);
    showView(asked());
  };
  $('settings').open = innerWidth > 720;
  showView(asked());
  if (!$('chat-view').hidden) $('message').focus();
  watch();
}

addEventListener('keydown', event => {
  if (event.key === 'Escape') Object.values(running).forEach(task => task.abort());
});
start().catch(showProblem);
