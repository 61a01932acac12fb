import { read } from './api.js';
import { byId, foreign, h, part, setText, syncList } from './dom.js';
import { pagedList } from './list.js';
import { createServer, updateServer } from './servers.js';
import { ago, number, plain, span } from './words.js';

/** @param {{ batch: string, id: string }} scrape */
const linkOf = ({ batch, id }) => `#/scrape/${encodeURIComponent(batch)}/${encodeURIComponent(id)}`;

/** The first view: servers, what is under way, what went wrong. */
export function overviewView() {
  let state = 'running';
  let writing = false;
  const counts = h('dl', { class: 'counts' });
  const servers = h('ul', { class: 'cards', 'aria-label': 'Servers' });
  const worker = h('p', { class: 'warning', hidden: true }, 'No worker is running. Start one: trawl work');
  const readOnly = h(
    'p',
    { class: 'quiet', hidden: true },
    'For looking only: with http.token in trawl.yaml scrapes can be cancelled and tried again, and servers paused, from here.',
  );
  const progress = pagedList({
    label: 'Scrapes in progress',
    empty: 'Nothing here.',
    load: async (cursor) => {
      const page = await read(
        `/scrapes?state=${state}&limit=20${cursor === null ? '' : `&cursor=${cursor}`}`,
      );
      return { items: page.scrapes, next: page.next, now: page.now };
    },
    keyOf: (scrape) => `${scrape.batch}.${scrape.id}`,
    create: createScrapeRow,
    update: updateProgressRow,
  });
  const failures = problemList('failure', 'No failures.');
  const warnings = problemList('warning', 'No warnings lately.');
  const tabs = h('fieldset', { class: 'tabs' }, h('legend', { class: 'hidden' }, 'Which scrapes'));
  for (const [value, text] of [
    ['running', 'Running'],
    ['reading', 'Reading items'],
    ['waiting', 'Waiting'],
  ]) {
    const input = h('input', {
      type: 'radio',
      name: 'state',
      value: value ?? '',
      checked: value === state,
      change: () => {
        state = value ?? '';
        progress.restart().catch(() => {});
      },
    });
    tabs.append(h('label', {}, input, h('span', {}, text ?? '')));
  }
  const element = h(
    'div',
    {},
    h('h1', { tabindex: '-1', class: 'hidden' }, 'Overview'),
    worker,
    counts,
    section('Servers', servers, readOnly),
    section('In progress', tabs, progress.element),
    h(
      'div',
      { class: 'columns' },
      section('Failures', failures.element),
      section('Warnings', warnings.element),
    ),
  );

  async function refresh() {
    const overview = await read('/overview');
    writing = overview.writing;
    worker.hidden = overview.worker;
    readOnly.hidden = writing;
    setText(byId('version'), `Trawl ${overview.version}`);
    syncList(counts, countsOf(overview.counts), ([name]) => name, createCount, updateCount);
    syncList(
      servers,
      overview.servers,
      (/** @type {any} */ server) => server.name,
      createServer,
      (row, server) => updateServer(row, server, overview.now, writing),
    );
    await Promise.all([progress.refresh(), failures.refresh(), warnings.refresh()]);
  }

  return { element, refresh, title: 'Overview' };
}

/** @param {string} title @param {...Node} content */
export function section(title, ...content) {
  const id = `h-${title.toLowerCase().replace(/\W+/g, '-')}`;
  return h('section', { 'aria-labelledby': id }, h('h2', { id }, title), ...content);
}

/** @param {any} counts @returns {[string, number][]} */
function countsOf(counts) {
  return [
    ['running', counts.running],
    ['reading items', counts.reading],
    ['waiting', counts.waiting],
    ['not looked at yet', counts.submitted],
  ];
}

/** @param {[string, number]} count */
function createCount([name]) {
  return h('div', {}, h('dt', {}, name), h('dd', { 'data-part': 'value' }));
}

/** @param {HTMLElement} row @param {[string, number]} count */
function updateCount(row, [, value]) {
  setText(part(row, 'value'), number(value));
}

/** @param {any} scrape */
function createScrapeRow(scrape) {
  return h(
    'li',
    {},
    h('a', { href: linkOf(scrape) }, foreign(`${scrape.batch}.${scrape.id}`)),
    h('span', { class: 'pill', 'data-part': 'state' }),
    h('span', { class: 'quiet', 'data-part': 'facts' }),
  );
}

/** @param {HTMLElement} row @param {any} scrape @param {number} now */
function updateProgressRow(row, scrape, now) {
  const pill = part(row, 'state');
  setText(pill, scrape.cancelledAt !== null ? 'being cancelled' : progressWord(scrape));
  pill.dataset.tone = scrape.cancelledAt !== null || scrape.phase === 'aborting' ? 'warning' : 'calm';
  const facts = [scrape.tool ?? scrape.server];
  if (scrape.startedAt !== null) facts.push(`for ${span(now - scrape.startedAt)}`);
  if (scrape.attempt > 1) facts.push(`attempt ${scrape.attempt}`);
  if (scrape.phase === 'reading') facts.push(`${number(scrape.itemsWritten)} items written`);
  else if (scrape.itemsSeen !== null) facts.push(`${number(scrape.itemsSeen)} items so far`);
  if (scrape.deadlineAt !== null && scrape.phase === 'running') {
    facts.push(`${span(scrape.deadlineAt - now)} to its deadline`);
  }
  setText(part(row, 'facts'), facts.join(' · '));
}

/** @param {any} scrape */
function progressWord({ phase, status }) {
  if (phase === 'queued' || phase === 'starting') return phase === 'queued' ? 'waits' : 'starting';
  if (phase === 'reading') return 'reading items';
  if (phase === 'aborting') return 'aborting';
  return plain(status ?? phase);
}

/** @param {'failure' | 'warning'} kind @param {string} empty */
function problemList(kind, empty) {
  return pagedList({
    label: kind === 'failure' ? 'Failures' : 'Warnings',
    empty,
    load: async (cursor) => {
      const page = await read(
        `/problems?class=${kind}&limit=10${cursor === null ? '' : `&cursor=${cursor}`}`,
      );
      return { items: page.problems, next: page.next, now: page.now };
    },
    keyOf: (problem) => `${problem.batch}.${problem.id} ${problem.attempt}`,
    create: (problem) =>
      h(
        'li',
        { class: 'problem' },
        h('a', { href: linkOf(problem) }, foreign(`${problem.batch}.${problem.id}`)),
        h('span', { class: 'pill', 'data-tone': kind }, plain(problem.outcome)),
        h('time', {
          class: 'quiet',
          'data-part': 'when',
          datetime: new Date(problem.finishedAt).toISOString(),
        }),
        h('p', {}, foreign(problem.message)),
      ),
    update: (row, problem, now) => setText(part(row, 'when'), ago(problem.finishedAt, now)),
  });
}
