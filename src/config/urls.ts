import { isAbsolute } from 'node:path';

const maxLength = 2048;

export interface RedisUrl {
  /** `redis://host:port`, `rediss://host:port`, an absolute socket path, or ''. */
  readonly url: string;
  readonly tls: boolean;
  readonly username?: string;
  readonly password?: string;
  readonly db?: number;
}

const redisShape =
  'redis://[user:password@]host[:port][/db], rediss://…, or the absolute path of a unix socket';

/** Takes a Redis address apart, so that what is kept as `url` holds no credentials. Faults quote nothing of it. */
export function readRedisUrl(text: unknown): { value: RedisUrl } | { fault: string } {
  if (text === '') return { value: { url: '', tls: false } };
  if (typeof text !== 'string' || text.length > maxLength || /\p{Cc}/u.test(text)) {
    return { fault: `${redisShape}, found something else` };
  }
  const socket = /^unix:\/\/(\/.*)$/.exec(text)?.[1] ?? text;
  if (isAbsolute(socket)) return { value: { url: socket, tls: false } };
  const url = URL.canParse(text) ? new URL(text) : null;
  if (url === null || (url.protocol !== 'redis:' && url.protocol !== 'rediss:') || url.hostname === '') {
    return { fault: `${redisShape}, found something else` };
  }
  const path = /^\/?(\d{0,5})$/.exec(url.pathname);
  if (path === null || url.search !== '' || url.hash !== '') {
    return { fault: `${redisShape}, found more after the host` };
  }
  let username: string;
  let password: string;
  try {
    username = decodeURIComponent(url.username);
    password = decodeURIComponent(url.password);
  } catch {
    return { fault: 'credentials with "%" written as %25, found a broken escape' };
  }
  return {
    value: {
      url: `${url.protocol}//${url.hostname}:${url.port === '' ? 6379 : url.port}`,
      tls: url.protocol === 'rediss:',
      ...(username === '' ? {} : { username }),
      ...(password === '' ? {} : { password }),
      ...(path[1] === '' ? {} : { db: Number(path[1]) }),
    },
  };
}

/** The base address of an OTLP/HTTP collector, or '' for none. */
export function readCollectorUrl(text: unknown): { value: string } | { fault: string } {
  if (text === '') return { value: '' };
  const url =
    typeof text === 'string' && text.length <= maxLength && URL.canParse(text) ? new URL(text) : null;
  if (url === null || (url.protocol !== 'https:' && url.protocol !== 'http:')) {
    return { fault: 'the http:// or https:// URL of an OTLP collector, found something else' };
  }
  if (url.username !== '' || url.password !== '' || url.search !== '' || url.hash !== '') {
    return { fault: 'a URL without credentials, query or fragment (secrets belong in "headers"), found one' };
  }
  if (/\/v1\/traces\/?$/.test(url.pathname)) {
    return { fault: 'the address before /v1/traces, which is added, found it with that' };
  }
  return { value: text as string };
}

/** The address of an MCP server: no credentials in it, and none of the parameters that Trawl sets. */
export function readServerUrl(text: unknown): { value: string } | { fault: string } {
  const url =
    typeof text === 'string' && text.length <= maxLength && URL.canParse(text) ? new URL(text) : null;
  if (url === null || (url.protocol !== 'https:' && url.protocol !== 'http:')) {
    return { fault: 'an http:// or https:// URL, found something else' };
  }
  if (url.username !== '' || url.password !== '' || url.searchParams.has('token')) {
    return { fault: 'a URL without credentials (they belong in "token"), found some' };
  }
  for (const key of ['tools', 'actors']) {
    if (url.searchParams.has(key)) return { fault: `tools under "tools", found ?${key}= in the URL` };
  }
  if (url.hash !== '') return { fault: 'a URL without a fragment, found one' };
  return { value: text as string };
}
