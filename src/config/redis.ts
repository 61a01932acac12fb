import { isAbsolute } from 'node:path';
import type { Config, SentinelConfig } from '../config.js';
import type { RawConfig } from './schema.js';
import { guard } from './secrets.js';

export type RedisResult =
  | { readonly ok: true; readonly redis: Config['redis'] }
  | { readonly ok: false; readonly key: string; readonly message: string };

/** Puts together what the address and the other keys say of Redis; keys win over credentials in the address. */
export function readRedis(raw: RawConfig['redis']): RedisResult {
  const { sentinel, url } = raw;
  if (sentinel !== undefined && url.url !== '') {
    return { ok: false, key: 'sentinel', message: 'expected either "url" or "sentinel", found both' };
  }
  if (raw.tls === true && sentinel === undefined && (url.url === '' || isAbsolute(url.url))) {
    return { ok: false, key: 'tls', message: 'expected a host in "url" to speak TLS with, found none' };
  }
  if (raw.tls === false && url.tls) {
    return { ok: false, key: 'tls', message: 'expected true or nothing beside a rediss:// url, found false' };
  }
  if (raw.db !== undefined && url.db !== undefined && raw.db !== url.db) {
    return { ok: false, key: 'db', message: `expected the database of the url, ${url.db}, found ${raw.db}` };
  }
  const db = raw.db ?? url.db;
  const redis: Config['redis'] = {
    url: url.url,
    ...credentials(raw.username || url.username, raw.password || url.password),
    ...(db === undefined ? {} : { db }),
    tls: raw.tls ?? url.tls,
    ...(sentinel === undefined ? {} : { sentinel: sentinelOf(sentinel) }),
  };
  return { ok: true, redis: guard(redis, ['password']) };
}

function sentinelOf(raw: NonNullable<RawConfig['redis']['sentinel']>): SentinelConfig {
  const { name, hosts } = raw;
  const sentinel: SentinelConfig = { name, hosts, ...credentials(raw.username, raw.password) };
  return guard(sentinel, ['password']);
}

function credentials(username: string | undefined, password: string | undefined) {
  return { ...(username ? { username } : {}), ...(password ? { password } : {}) };
}
