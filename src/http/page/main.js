import { ApiError, ask, forgetToken, hasToken } from './api.js';
import { byId, h, setText } from './dom.js';
import { itemsView } from './items.js';
import { listen } from './notice.js';
import { overviewView } from './overview.js';
import { scrapeView } from './scrape.js';
import { queuesView, signInView } from './signin.js';

/** @typedef {{ element: HTMLElement, refresh: () => Promise<void>, title: string }} View */

const everyMs = 5_000;
const afterErrorMs = 15_000;

/** @type {View | null} */
let view = null;
/** @type {ReturnType<typeof setTimeout> | undefined} */
let timer;
let refreshing = false;
let again = false;

/** @returns {View} */
function viewFor() {
  const parts = location.hash.replace(/^#\/?/, '').split('/').map(decode);
  const [name, batch = '', id = '', page = ''] = parts;
  switch (name) {
    case 'scrape':
      return scrapeView({ batch, id });
    case 'items':
      return itemsView({ batch, id }, page);
    case 'queues':
      return queuesView(wantsToken);
    default:
      return overviewView();
  }
}

/** @param {string} text */
function decode(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function route() {
  // "Skip to the content" is a place on the page, not a view.
  if (location.hash === '#main') return;
  const first = view === null;
  show(viewFor());
  if (!first) view?.element.querySelector('h1')?.focus();
  refresh();
}

/** @param {View} next */
function show(next) {
  view = next;
  byId('main').replaceChildren(next.element);
  document.title = `${next.title} · Trawl`;
  byId('sign-out').hidden = !hasToken();
  const queues = location.hash.startsWith('#/queues');
  byId('nav-queues').toggleAttribute('aria-current', queues);
  byId('nav-overview').toggleAttribute('aria-current', !queues && next.title === 'Overview');
}

/** Looks again every few seconds, and not at all while nobody can see it. */
async function refresh() {
  if (refreshing) {
    again = true;
    return;
  }
  clearTimeout(timer);
  if (document.visibilityState === 'hidden' || view === null) return;
  refreshing = true;
  const shown = view;
  let wait = everyMs;
  try {
    await shown.refresh();
    if (shown === view) setText(byId('freshness'), `As of ${new Date().toLocaleTimeString('en-GB')}.`);
  } catch (error) {
    wait = afterErrorMs;
    if (shown === view) failed(error);
  } finally {
    refreshing = false;
  }
  clearTimeout(timer);
  timer = setTimeout(refresh, again ? 0 : wait);
  again = false;
}

/** @param {unknown} error */
function failed(error) {
  if (!(error instanceof ApiError)) throw error;
  if (error.wantsToken) {
    wantsToken(error);
    return;
  }
  if (error.status === 0 || error.status === 503) {
    setText(byId('freshness'), `${error.message} Trying again.`);
    return;
  }
  show({
    element: h(
      'div',
      {},
      h('h1', { tabindex: '-1' }, 'Not shown'),
      h('p', {}, error.message),
      h('p', { class: 'quiet' }, error.hint),
      h('p', {}, h('a', { href: '#/' }, 'Overview')),
    ),
    refresh: () => Promise.resolve(),
    title: 'Not shown',
  });
}

/** @param {ApiError} error */
function wantsToken(error) {
  const wrong = hasToken();
  forgetToken();
  const message = wrong
    ? `${error.message} ${error.code === 'http_token_wrong' ? 'Try again.' : ''}`
    : error.message;
  show(signInView({ message, hint: error.hint }, route));
  byId('token').focus();
}

byId('sign-out').addEventListener('click', async () => {
  await ask('/board', { method: 'DELETE' }).catch(() => {});
  forgetToken();
  location.hash = '#/';
  route();
});
listen({ changed: refresh, wantsToken });
addEventListener('hashchange', route);
document.addEventListener('visibilitychange', refresh);
route();
