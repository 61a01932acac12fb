import { change } from './api.js';
import { h, part, setText, syncList } from './dom.js';
import { say } from './notice.js';
import { clock, number, plain, span } from './words.js';

// A server's card: its state in a word, slots, what stands in its way and since when, and the switch.

/** @param {any} server */
export function createServer(server) {
  const button = h('button', { type: 'button', 'data-part': 'switch', hidden: true });
  button.addEventListener('click', () => switchServer(server.name, button));
  return h(
    'li',
    { class: 'card' },
    h('div', { class: 'head' }, h('h3', {}, server.name), h('span', { class: 'pill', 'data-part': 'state' })),
    h(
      'p',
      { class: 'slots' },
      h('meter', { min: '0', 'data-part': 'meter', 'aria-label': `Run slots of ${server.name} in use` }),
      h('span', { 'data-part': 'slots' }),
    ),
    h('p', { 'data-part': 'waiting', class: 'quiet' }),
    h('ul', { 'data-part': 'troubles', class: 'troubles' }),
    button,
  );
}

/** @param {HTMLElement} row @param {any} server @param {number} now @param {boolean} writing */
export function updateServer(row, server, now, writing) {
  const [word, tone] = stateOf(server, now);
  const pill = part(row, 'state');
  setText(pill, word);
  pill.dataset.tone = tone;
  const meter = /** @type {HTMLMeterElement} */ (part(row, 'meter'));
  meter.max = server.runSlots;
  meter.value = server.runsInFlight;
  setText(part(row, 'slots'), `${number(server.runsInFlight)} of ${number(server.runSlots)} run slots held`);
  const aside = server.setAside > 0 ? `, ${number(server.setAside)} of them set aside` : '';
  setText(part(row, 'waiting'), `${number(server.waiting)} waiting${aside}`);
  syncList(
    part(row, 'troubles'),
    troublesOf(server, now),
    ({ key }) => key,
    (trouble) => createTrouble(server.name, trouble),
    (item, trouble) => {
      setText(part(item, 'what'), trouble.what);
      setText(part(item, 'message'), trouble.message);
      const resume = item.querySelector('button');
      if (resume !== null) resume.hidden = !writing;
    },
  );
  const button = part(row, 'switch');
  const paused = server.pausedSince !== null;
  button.hidden = !writing;
  button.dataset.verb = paused ? 'resume' : 'pause';
  setText(button, paused ? `Resume ${server.name}` : `Pause ${server.name}`);
}

/** @param {any} server @param {number} now @returns {[string, string]} */
function stateOf(server, now) {
  if (server.pausedSince !== null) return ['paused', 'warning'];
  if (server.hold !== null) return [`held: ${plain(server.hold.reason)}`, 'failure'];
  if (server.coolUntil !== null && server.coolUntil > now) return ['cooling down', 'warning'];
  return server.tools.some((/** @type {any} */ tool) => tool.hold !== null || tool.pausedSince !== null)
    ? ['a tool is stopped', 'warning']
    : ['ok', 'ok'];
}

/** @typedef {{ key: string, what: string, message: string, pausedTool?: string }} Trouble */

/** @param {string} server @param {Trouble} trouble */
function createTrouble(server, { pausedTool }) {
  const resume =
    pausedTool === undefined
      ? null
      : h(
          'button',
          {
            type: 'button',
            click: () =>
              void say(() => change(`/servers/${encodeURIComponent(server)}/resume`, { tool: pausedTool })),
          },
          `Resume ${pausedTool}`,
        );
  return h('li', {}, h('strong', { 'data-part': 'what' }), ' ', h('bdi', { 'data-part': 'message' }), resume);
}

/** @param {any} server @param {number} now @returns {Trouble[]} */
function troublesOf(server, now) {
  /** @type {Trouble[]} */
  const found = [];
  /** @param {number} at */
  const since = (at) => `since ${clock(at, now)} (${span(now - at)})`;
  if (server.pausedSince !== null) {
    found.push({ key: 'pause', what: `Paused by an operator ${since(server.pausedSince)}.`, message: '' });
  }
  if (server.hold !== null) {
    const what = `Held ${since(server.hold.since)}: ${plain(server.hold.reason)}. Goes on by itself.`;
    found.push({ key: 'hold', what, message: server.hold.message });
  }
  if (server.coolUntil !== null && server.coolUntil > now) {
    const what = `Cools down for ${span(server.coolUntil - now)}: ${plain(server.coolReason ?? 'capacity')}.`;
    found.push({ key: 'cool', what, message: '' });
  }
  for (const { tool, hold, pausedSince } of server.tools.slice(0, 20)) {
    if (pausedSince !== null) {
      found.push({
        key: `p ${tool}`,
        what: `Paused ${since(pausedSince)}:`,
        message: tool,
        pausedTool: tool,
      });
    }
    if (hold !== null) {
      const what = `Tool held ${since(hold.since)}: ${plain(hold.reason)}.`;
      found.push({ key: `h ${tool}`, what, message: `${tool}: ${hold.message}` });
    }
  }
  return found;
}

/** @param {string} server @param {HTMLElement} button */
async function switchServer(server, button) {
  button.setAttribute('aria-busy', 'true');
  await say(() => change(`/servers/${encodeURIComponent(server)}/${button.dataset.verb}`));
  button.removeAttribute('aria-busy');
}
