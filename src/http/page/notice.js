import { ApiError } from './api.js';
import { byId, setText } from './dom.js';

/** @type {() => void} */
let afterChange = () => {};
/** @type {(error: ApiError) => void} */
let onWantsToken = () => {};
let shown = 0;

/** @param {{ changed: () => void, wantsToken: (error: ApiError) => void }} options */
export function listen({ changed, wantsToken }) {
  afterChange = changed;
  onWantsToken = wantsToken;
}

/** Puts a sentence where a screen reader hears it. @param {string} text @param {'ok' | 'failure'} [tone] */
export function notice(text, tone = 'ok') {
  const place = byId('notice');
  shown += 1;
  const mine = shown;
  place.dataset.tone = tone;
  setText(place, text);
  setTimeout(() => {
    if (mine === shown) setText(place, '');
  }, 10_000);
}

/**
 * Makes a change and says what came of it. True when it was made.
 * @param {() => Promise<{ message: string }>} work
 */
export async function say(work) {
  try {
    notice((await work()).message);
    afterChange();
    return true;
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    if (error.wantsToken) onWantsToken(error);
    else notice(`${error.message} ${error.hint}`.trim(), 'failure');
    return false;
  }
}

/**
 * Asks before something that costs money or cannot be undone.
 * @param {string} title @param {string} text @param {string} yes
 * @returns {Promise<boolean>}
 */
export function confirm(title, text, yes) {
  const dialog = /** @type {HTMLDialogElement} */ (byId('confirm'));
  setText(byId('confirm-title'), title);
  setText(byId('confirm-text'), text);
  setText(byId('confirm-yes'), yes);
  dialog.returnValue = 'no';
  dialog.showModal();
  return new Promise((resolve) => {
    dialog.addEventListener('close', () => resolve(dialog.returnValue === 'yes'), { once: true });
  });
}
