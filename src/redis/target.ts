import type { Config, SentinelConfig } from '../config.js';
import { TrawlError } from '../errors.js';

/** Where a Redis is and who we are there. */
export interface RedisAddress {
  readonly host?: string;
  readonly port?: number;
  /** Unix socket. */
  readonly path?: string;
  readonly tls: boolean;
  readonly sentinel?: SentinelConfig;
  readonly username?: string;
  readonly password?: string;
  readonly db: number;
  /** For people; without user and password. */
  readonly label: string;
  /** What must not be shown, in every spelling that may come back in an error. */
  readonly secrets: readonly string[];
}

/**
 * Reads `redis` of the configuration: `redis://`, `rediss://`, the absolute path of a unix socket, or a Sentinel group.
 * Credentials in the URL work as well, for targets that no configuration file was read for; keys of their own win.
 * @throws TrawlError `config_invalid`, without the URL in the message: it may hold a password
 */
export function parseTarget(target: Config['redis']): RedisAddress {
  const { sentinel } = target;
  if (sentinel) {
    const hosts = sentinel.hosts.map(({ host, port }) => `${host}:${port}`).join(', ');
    return finish({ tls: target.tls, sentinel }, target, `${sentinel.name} (Sentinel ${hosts})`);
  }
  if (target.url.startsWith('/')) return finish({ path: target.url, tls: false }, target, target.url);
  const url = readUrl(target.url);
  const host = url.hostname.replace(/^\[|\]$/g, '') || '127.0.0.1';
  const port = url.port === '' ? 6379 : Number(url.port);
  const path = url.pathname.replace(/^\//, '');
  if (!/^\d{0,5}$/.test(path)) throw invalid('the path may only be a database number');
  const login = {
    username: target.username ?? decode(url.username),
    password: target.password ?? decode(url.password),
    db: target.db ?? Number(path),
  };
  const tls = target.tls || url.protocol === 'rediss:';
  return finish({ host, port, tls }, login, `${url.protocol}//${url.hostname || host}:${port}`);
}

type Place = Pick<RedisAddress, 'host' | 'port' | 'path' | 'tls' | 'sentinel'>;
type Login = { username?: string | undefined; password?: string | undefined; db?: number | undefined };

function finish(place: Place, { username, password, db = 0 }: Login, label: string): RedisAddress {
  const secrets = [password, place.sentinel?.password].flatMap((secret) => secret || []);
  return {
    ...place,
    ...(username ? { username } : {}),
    ...(password ? { password } : {}),
    db,
    label: db === 0 ? label : `${label} db ${db}`,
    secrets: [...new Set(secrets.flatMap((secret) => [secret, encodeURIComponent(secret)]))],
  };
}

function readUrl(text: string): URL {
  let url: URL;
  try {
    url = new URL(text);
  } catch {
    throw invalid();
  }
  if (url.protocol !== 'redis:' && url.protocol !== 'rediss:') throw invalid();
  return url;
}

function decode(text: string): string | undefined {
  if (text === '') return undefined;
  try {
    return decodeURIComponent(text);
  } catch {
    throw invalid('a % in it is not an escape');
  }
}

function invalid(reason = 'expected redis://, rediss:// or the absolute path of a unix socket'): TrawlError {
  return new TrawlError('config_invalid', `redis.url: ${reason}.`, {
    hint: 'For example redis://127.0.0.1:6379/0; special characters of a password are percent-encoded.',
  });
}
