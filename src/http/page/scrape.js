import { change, read, scrapePath } from './api.js';
import { foreign, h, part, setText, syncList } from './dom.js';
import { confirm, say } from './notice.js';
import { section } from './overview.js';
import { ago, clock, counted, money, number, plain, size, span } from './words.js';

/** One scrape: how it stands, what happened to it, its pages. @param {{ batch: string, id: string }} scrape */
export function scrapeView(scrape) {
  const key = `${scrape.batch}.${scrape.id}`;
  const path = scrapePath(scrape);
  const pill = h('span', { class: 'pill' });
  const message = h('p', { class: 'message' });
  const facts = h('dl', { class: 'facts' });
  const timeline = h('ol', { class: 'timeline' });
  const pages = h('ul', { class: 'rows', 'aria-label': 'Pages' });
  const noPages = h('p', { class: 'quiet' }, 'No page is written yet.');
  const cancel = h('button', { type: 'button', class: 'strong', hidden: true, click: onCancel }, 'Cancel');
  const retry = h('button', { type: 'button', hidden: true, click: onRetry }, 'Try again');
  const writing = read('/overview').then(
    (overview) => overview.writing,
    () => false,
  );
  const element = h(
    'div',
    {},
    h('p', { class: 'back' }, h('a', { href: '#/' }, '← Overview')),
    h('div', { class: 'head' }, h('h1', { tabindex: '-1' }, foreign(key)), pill),
    message,
    h('div', { class: 'actions' }, cancel, retry),
    h(
      'div',
      { class: 'columns' },
      section('Timeline', timeline),
      h('div', {}, section('Facts', facts), section('Pages', noPages, pages)),
    ),
  );

  /** The attempt that is shown as failed. @type {number | null} */
  let shown = null;

  async function onCancel() {
    const text = 'Its run is aborted. Pages that were written stay; what was spent stays spent.';
    if (await confirm(`Cancel ${key}?`, text, 'Cancel the scrape')) await say(() => change(`${path}/cancel`));
  }

  async function onRetry() {
    const text =
      'A new run is started and paid for. The results of earlier attempts are kept beside the new ones.';
    if (await confirm(`Try ${key} again?`, text, 'Try again'))
      await say(() => change(`${path}/retry`, shown === null ? undefined : { attempt: shown }));
  }

  async function refresh() {
    const found = await read(path);
    const { now } = found;
    shown = found.scrape.attempt;
    setText(pill, wordOf(found.scrape));
    pill.dataset.tone = found.scrape.class ?? 'calm';
    message.replaceChildren(foreign(found.scrape.message ?? found.scrape.statusMessage ?? ''));
    const mayWrite = await writing;
    cancel.hidden = !(mayWrite && found.scrape.canCancel && found.scrape.cancelledAt === null);
    retry.hidden = !(mayWrite && found.scrape.canRetry);
    syncList(facts, factsOf(found.scrape, now), ([name]) => name, createFact, updateFact);
    const happenings = withGap(found.timeline);
    syncList(timeline, happenings, keyOf, createHappening, (row, each) => updateHappening(row, each, now));
    const written = found.timeline.happenings.filter((/** @type {any} */ each) => each.what === 'page');
    noPages.hidden = written.length > 0;
    syncList(
      pages,
      [...written, ...more(written.length, found.scrape.pages)],
      (/** @type {any} */ page) => String(page.page),
      (page) => createPage(scrape, page),
      () => {},
    );
  }

  return { element, refresh, title: key };
}

/** Pages beyond those whose times are shown, as many as a person may want to click. @param {number} from @param {number} all */
function more(from, all) {
  return Array.from({ length: Math.max(0, Math.min(all, from + 50) - from) }, (_, index) => ({
    page: from + index,
    bytes: null,
  }));
}

/** @param {{ batch: string, id: string }} scrape @param {{ page: number, bytes: number | null }} page */
function createPage({ batch, id }, page) {
  const href = `#/items/${encodeURIComponent(batch)}/${encodeURIComponent(id)}/${page.page}`;
  const bytes = page.bytes === null ? null : h('span', { class: 'quiet' }, size(page.bytes));
  return h('li', {}, h('a', { href }, `Page ${page.page}`), bytes);
}

/** @param {any} scrape */
function wordOf({ outcome, phase, accepted, cancelledAt, status }) {
  if (outcome !== null) return plain(outcome);
  if (!accepted) return 'not looked at yet';
  if (cancelledAt !== null) return 'being cancelled';
  /** @type {Record<string, string>} */
  const words = {
    queued: 'waits for its start',
    starting: 'starting',
    running: plain(status ?? 'running'),
    aborting: 'aborting',
    reading: 'reading items',
    decided: 'settling',
  };
  return words[phase] ?? phase;
}

/** @param {any} scrape @param {number} now @returns {[string, string][]} */
function factsOf(scrape, now) {
  /** @type {[string, string | null][]} */
  const rows = [
    ['Server', scrape.server],
    ['Tool', scrape.tool],
    ['Attempt', scrape.attempt === null ? null : String(scrape.attempt)],
    ['Run', scrape.runId],
    ['Run status', scrape.status],
    ['Items', `${number(scrape.items)} in ${counted(scrape.pages, 'page')}, ${size(scrape.bytes)}`],
    ['Items seen', scrape.itemsSeen === null ? null : number(scrape.itemsSeen)],
    ['Polls', number(scrape.polls)],
    [
      'Deadline',
      scrape.deadlineAt === null
        ? null
        : `${clock(scrape.deadlineAt, now)}, in ${span(scrape.deadlineAt - now)}`,
    ],
    ['Took', scrape.durationSeconds === null ? null : span(scrape.durationSeconds * 1000)],
    ['Spent', scrape.usageUsd === null ? 'not told by the server' : money(scrape.usageUsd)],
    ...scrape.warnings.map((/** @type {string} */ text, /** @type {number} */ index) => [
      `Warning ${index + 1}`,
      text,
    ]),
    ['Results', scrape.destination],
  ];
  return rows.flatMap(([name, value]) =>
    value === null ? [] : [/** @type {[string, string]} */ ([name, value])],
  );
}

/** @param {[string, string]} fact */
function createFact([name]) {
  return h('div', {}, h('dt', {}, name), h('dd', {}, h('bdi', { 'data-part': 'value' })));
}

/** @param {HTMLElement} row @param {[string, string]} fact */
function updateFact(row, [, value]) {
  setText(part(row, 'value'), value);
}

/** @param {any} timeline @returns {any[]} */
function withGap({ happenings, earlierLooks }) {
  if (earlierLooks === 0) return happenings;
  const first = happenings.findIndex((/** @type {any} */ each) => each.what === 'look');
  const gap = { at: happenings[first]?.at ?? 0, what: 'gap', looks: earlierLooks };
  return [...happenings.slice(0, first), gap, ...happenings.slice(first)];
}

/** @param {any} each */
function keyOf(each) {
  return `${each.at} ${each.what} ${each.page ?? each.looks ?? ''} ${each.status ?? ''}`;
}

/** @param {any} each */
function createHappening(each) {
  return h(
    'li',
    { 'data-what': each.what },
    h('time', { datetime: new Date(each.at).toISOString(), 'data-part': 'when' }),
    h('span', { 'data-part': 'text' }),
  );
}

/** @param {HTMLElement} row @param {any} each @param {number} now */
function updateHappening(row, each, now) {
  const when = part(row, 'when');
  setText(when, clock(each.at, now));
  when.title = ago(each.at, now);
  setText(part(row, 'text'), textOf(each));
}

/** @param {any} each */
function textOf(each) {
  switch (each.what) {
    case 'submitted':
      return 'Submitted to the queue';
    case 'started':
      return 'Run started';
    case 'look':
      return `Poll: ${plain(each.status)}${each.items === null ? '' : `, ${counted(each.items, 'item')}`}`;
    case 'gap':
      return `${number(each.looks)} earlier polls`;
    case 'ended':
      return 'Run ended';
    case 'cancelled':
      return 'Cancel asked for';
    case 'page':
      return `Page ${each.page} written, ${size(each.bytes)}`;
    case 'settled':
      return 'Settled';
    default:
      return each.what;
  }
}
