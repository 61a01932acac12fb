import { ask, scrapePath } from './api.js';
import { foreign, h } from './dom.js';
import { visible } from './words.js';

/** One page of items, as it is stored, part by part. @param {{ batch: string, id: string }} scrape @param {string} page */
export function itemsView(scrape, page) {
  const key = `${scrape.batch}.${scrape.id}`;
  const back = `#/scrape/${encodeURIComponent(scrape.batch)}/${encodeURIComponent(scrape.id)}`;
  const text = h('pre', { tabindex: '0', 'aria-label': `Items of page ${page}` });
  const more = h('button', { type: 'button', hidden: true, click: () => void add().catch(() => {}) }, 'More');
  const element = h(
    'div',
    {},
    h('p', { class: 'back' }, h('a', { href: back }, '←', foreign(key))),
    h('h1', { tabindex: '-1' }, `Page ${page} of `, foreign(key)),
    h('p', { class: 'quiet' }, 'One item a line, as stored. What cannot be seen is written as \\u{…}.'),
    text,
    h('div', { class: 'actions' }, more),
  );
  /** @type {string | null} */
  let next = '0';
  let busy = false;
  let open = false;

  /** A part may end within an item that is longer than a part. @param {string} part */
  function append(part) {
    const lines = part.split('\n');
    const ended = lines.at(-1) === '';
    if (ended) lines.pop();
    lines.forEach((line, index) => {
      const last = index === 0 && open ? text.lastElementChild : null;
      if (last !== null) last.append(visible(line));
      else text.append(h('div', { class: 'item' }, visible(line)));
    });
    open = !ended;
  }

  async function add() {
    if (busy || next === null) return;
    busy = true;
    try {
      const answer = await ask(`${scrapePath(scrape)}/pages/${encodeURIComponent(page)}?offset=${next}`);
      append(await answer.text());
      next = answer.headers.get('trawl-next-offset');
      more.hidden = next === null;
    } finally {
      busy = false;
    }
  }

  // A page never changes: it is read once, and not again with every refresh.
  return {
    element,
    refresh: () => (text.textContent === '' ? add() : Promise.resolve()),
    title: `Page ${page} of ${key}`,
  };
}
