import { h, setText, syncList } from './dom.js';

/**
 * A list that is read page by page: one page is on the screen, "Next" and "First page" lead on.
 * @template T
 * @param {{
 *   label: string,
 *   empty: string,
 *   load: (cursor: string | null) => Promise<{ items: T[], next: string | null, now: number }>,
 *   keyOf: (item: T) => string,
 *   create: (item: T) => HTMLElement,
 *   update: (row: HTMLElement, item: T, now: number) => void,
 * }} options
 */
export function pagedList({ label, empty, load, keyOf, create, update }) {
  const rows = h('ul', { class: 'rows', 'aria-label': label });
  const none = h('p', { class: 'quiet', hidden: true }, empty);
  const first = h('button', { type: 'button', hidden: true, click: () => go(null) }, 'First page');
  const next = h('button', { type: 'button', hidden: true, click: () => go(following) }, 'Next');
  /** @type {string | null} */
  let cursor = null;
  /** @type {string | null} */
  let following = null;
  let turn = 0;

  async function refresh() {
    turn += 1;
    const mine = turn;
    const page = await load(cursor);
    // A later call has overtaken this one.
    if (mine !== turn) return;
    following = page.next;
    syncList(rows, page.items, keyOf, create, (row, item) => update(row, item, page.now));
    none.hidden = page.items.length > 0;
    const further = following === null ? 'Nothing more.' : 'None here; further back there may be.';
    setText(none, cursor === null && following === null ? empty : further);
    first.hidden = cursor === null;
    next.hidden = following === null;
  }

  /** @param {string | null} to */
  function go(to) {
    cursor = to;
    refresh()
      .then(() => rows.scrollIntoView({ block: 'nearest' }))
      .catch(() => {});
  }

  return {
    element: h('div', {}, none, rows, h('div', { class: 'actions paging' }, first, next)),
    refresh,
    restart() {
      cursor = null;
      rows.replaceChildren();
      return refresh();
    },
  };
}
