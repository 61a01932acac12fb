import { ask, change, hasToken, keepToken } from './api.js';
import { h } from './dom.js';
import { say } from './notice.js';

/**
 * Asks for the token. It never goes into an address: the form is sent by nobody, not even with this script broken.
 * @param {{ message: string, hint: string }} why @param {() => void} done
 */
export function signInView(why, done) {
  const input = h('input', {
    type: 'password',
    id: 'token',
    autocomplete: 'current-password',
    required: true,
    pattern: '\\s*[!-~]+\\s*',
    title: 'Letters, digits and signs, no blanks',
    'aria-describedby': 'token-why',
  });
  const form = h(
    'form',
    {
      class: 'sign-in',
      submit: (event) => {
        event.preventDefault();
        keepToken(/** @type {HTMLInputElement} */ (input).value.trim());
        done();
      },
    },
    h('h1', { tabindex: '-1' }, 'Token'),
    h('p', { id: 'token-why' }, why.message),
    h('label', { for: 'token' }, 'http.token of trawl.yaml'),
    input,
    h('button', { type: 'submit', class: 'strong' }, 'Go on'),
    h('p', { class: 'quiet' }, 'It is kept in this tab until the tab is closed, and nowhere else.'),
  );
  return { element: form, refresh: () => Promise.resolve(), title: 'Token' };
}

/** Opens the queue board: a cookie is got with the token, since a link carries none. @param {(error: any) => void} wantsToken */
export function queuesView(wantsToken) {
  const open = h(
    'button',
    {
      type: 'button',
      class: 'strong',
      click: () =>
        void say(async () => {
          const { opens } = await change('/board');
          location.assign(opens);
          return { message: 'Opening the queue board.' };
        }),
    },
    'Open the queue board',
  );
  const element = h(
    'div',
    {},
    h('h1', { tabindex: '-1' }, 'Queue board'),
    h(
      'p',
      {},
      'Bull Board shows the jobs behind the scrapes. The queues of the stages are read-only there: their jobs are Trawl’s own. It stays open for an hour.',
    ),
    open,
  );
  return {
    element,
    title: 'Queue board',
    refresh: async () => {
      if (!hasToken()) await ask('/overview').catch(wantsToken);
    },
  };
}
