// Talks to /api/v1. The token lives in this tab's session storage alone: closing the tab forgets it.

const storageKey = 'trawl.token';
const answerMs = 15_000;

/** A refusal, with the code of docs/errors.md. */
export class ApiError extends Error {
  /** @param {number} status @param {string} code @param {string} message @param {string} [hint] */
  constructor(status, code, message, hint) {
    super(message);
    this.status = status;
    this.code = code;
    this.hint = hint ?? '';
  }

  /** Asking for the token helps. */
  get wantsToken() {
    return this.status === 401;
  }
}

export function hasToken() {
  return sessionStorage.getItem(storageKey) !== null;
}

/** @param {string} token */
export function keepToken(token) {
  sessionStorage.setItem(storageKey, token);
}

export function forgetToken() {
  sessionStorage.removeItem(storageKey);
}

/**
 * @param {string} path below /api/v1, its parts encoded
 * @param {{ method?: string, body?: unknown }} [options]
 * @returns {Promise<Response>}
 */
export async function ask(path, { method = 'GET', body } = {}) {
  const token = sessionStorage.getItem(storageKey);
  /** @type {Record<string, string>} */
  const headers = {};
  if (token !== null) headers.authorization = `Bearer ${token}`;
  if (body !== undefined) headers['content-type'] = 'application/json';
  let response;
  try {
    response = await fetch(`/api/v1${path}`, {
      method,
      headers,
      body: body === undefined ? null : JSON.stringify(body),
      signal: AbortSignal.timeout(answerMs),
    });
  } catch {
    throw new ApiError(0, 'unreachable', 'Trawl does not answer. Is trawl work running?');
  }
  if (response.ok) return response;
  const { error } = await response.json().catch(() => ({ error: {} }));
  throw new ApiError(
    response.status,
    String(error?.code ?? 'unknown'),
    String(error?.message ?? `Trawl answered ${response.status}.`),
    error?.hint,
  );
}

/** @param {string} path @returns {Promise<any>} */
export async function read(path) {
  return (await ask(path)).json();
}

/** @param {string} path @param {unknown} [body] @returns {Promise<any>} */
export async function change(path, body) {
  return (await ask(path, { method: 'POST', body })).json();
}

/** @param {{ batch: string, id: string }} scrape */
export function scrapePath({ batch, id }) {
  return `/scrapes/${encodeURIComponent(batch)}/${encodeURIComponent(id)}`;
}
