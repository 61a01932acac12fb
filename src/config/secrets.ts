import { resolve } from 'node:path';
import { inspect } from 'node:util';
import type { Config } from '../config.js';
import { cleanText } from '../scrape/clean-text.js';
import type { ConfigProblem } from './problem.js';
import { createScrubber, secretMark } from './scrub.js';
import { isMap, originOf, type Tree, valueAt } from './tree.js';
import { readBounded } from './yaml-file.js';

const maxSecretBytes = 65_536;

/** Every secret of a configuration, to register with a logger. */
export function configSecrets(config: Config): string[] {
  const secrets = [config.redis.password, config.redis.sentinel?.password, config.http.token];
  for (const server of Object.values(config.servers)) secrets.push(server.token);
  for (const header of config.traces.headers.split(',')) {
    const value = header.slice(header.indexOf('=') + 1);
    secrets.push(value, decodeURIComponent(value));
  }
  return secrets.filter((secret): secret is string => typeof secret === 'string' && secret !== '');
}

/** A plain copy that may be printed: `[secret]` in place of each secret. */
export function describeConfig(config: Config): Record<string, unknown> {
  return JSON.parse(JSON.stringify(config)) as Record<string, unknown>;
}

/** The text with every secret of the configuration replaced by `[secret]`. */
export function redact(text: string, config: Config): string {
  return createScrubber(configSecrets(config)).scrub(text);
}

/**
 * Makes `JSON.stringify` and `util.inspect` show `[secret]` for some keys. The hooks are not enumerable, so a spread
 * copy keeps the secrets and loses the protection; the logger's redaction stands behind it.
 */
export function guard<T extends object>(object: T, keys: readonly (keyof T)[]): T {
  const shown = () => {
    const copy = { ...object } as Record<keyof T, unknown>;
    for (const key of keys) if (copy[key]) copy[key] = secretMark;
    return copy;
  };
  Object.defineProperty(object, 'toJSON', { value: shown });
  Object.defineProperty(object, inspect.custom, { value: shown });
  return object;
}

/** Mappings that hold secrets and the keys that may come from a file instead. */
function secretPlaces(tree: Tree): { path: string[]; keys: string[] }[] {
  const servers = valueAt(tree.root, ['servers']);
  return [
    { path: ['redis'], keys: ['url', 'password'] },
    { path: ['redis', 'sentinel'], keys: ['password'] },
    { path: ['http'], keys: ['token'] },
    { path: ['traces'], keys: ['headers'] },
    ...(isMap(servers)
      ? Object.keys(servers).map((name) => ({ path: ['servers', name], keys: ['token'] }))
      : []),
  ];
}

/** Values at places that hold secrets, before anything is validated, so that no message repeats one. */
export function treeSecrets(tree: Tree): string[] {
  const found: string[] = [];
  for (const { path, keys } of secretPlaces(tree)) {
    for (const key of keys) {
      const value = valueAt(tree.root, [...path, key]);
      if (typeof value === 'string') found.push(value);
      if (typeof value === 'string' && key === 'url') {
        const password = /^[a-z+]+:\/\/[^/]*?:([^/]*)@/i.exec(value)?.[1];
        if (password !== undefined) found.push(password);
      }
    }
  }
  return found;
}

/**
 * Reads the files named by `tokenFile`, `passwordFile` and `urlFile` (trimmed) into `token`, `password`, `url`.
 * `baseOf` says against which folder a path is resolved.
 */
export function readSecretFiles(tree: Tree, baseOf: (path: readonly string[]) => string): ConfigProblem[] {
  const problems: ConfigProblem[] = [];
  for (const { path, keys } of secretPlaces(tree)) {
    const map = valueAt(tree.root, path);
    if (!isMap(map)) continue;
    for (const key of keys) {
      const fileKey = `${key}File`;
      const file = map[fileKey];
      if (typeof file !== 'string' || file === '' || file.includes('\0')) continue;
      const at = [...path, fileKey];
      const origin = originOf(tree, at);
      if (map[key] !== undefined && map[key] !== '') {
        const message = `expected either "${key}" or "${fileKey}", found both`;
        problems.push({ path: at, origin, message, code: 'config_invalid' });
        continue;
      }
      const read = readSecret(resolve(baseOf(at), file));
      if (read.ok) {
        map[key] = read.secret;
        continue;
      }
      const message = `expected a file with one secret, found ${read.found}: ${cleanText(file, 80)}`;
      problems.push({ path: at, origin, message, code: 'config_secret_unreadable' });
    }
  }
  return problems;
}

function readSecret(file: string): { ok: true; secret: string } | { ok: false; found: string } {
  let bytes: Buffer;
  try {
    bytes = readBounded(file, maxSecretBytes);
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code ?? 'error';
    const known: Record<string, string> = {
      ENOENT: 'no such file',
      EISDIR: 'a directory',
      EACCES: 'one that may not be read',
    };
    return { ok: false, found: known[code] ?? code };
  }
  if (bytes.length > maxSecretBytes) return { ok: false, found: `more than ${maxSecretBytes} bytes` };
  const secret = bytes
    .toString('utf8')
    .replace(/^\ufeff/, '')
    .trim();
  return secret === '' ? { ok: false, found: 'an empty one' } : { ok: true, secret };
}
