import { lstatSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Redis } from 'ioredis';

/** Every key of a Redis with all it holds, as text. */
export async function dumpRedis(client: Redis): Promise<Map<string, string>> {
  const dump = new Map<string, string>();
  let cursor = '0';
  do {
    const [next, keys] = await client.scan(cursor, 'COUNT', 1_000);
    cursor = next;
    for (const key of keys) dump.set(key, JSON.stringify(await contentOf(client, key)));
  } while (cursor !== '0');
  return dump;
}

async function contentOf(client: Redis, key: string): Promise<unknown> {
  const type = await client.type(key);
  switch (type) {
    case 'string':
      return client.get(key);
    case 'hash':
      return client.hgetall(key);
    case 'list':
      return client.lrange(key, 0, -1);
    case 'set':
      return client.smembers(key);
    case 'zset':
      return client.zrange(key, '0', '-1', 'WITHSCORES');
    case 'stream':
      return client.xrange(key, '-', '+');
    case 'none':
      return null;
    default:
      throw new Error(`no reader for a key of type ${type}`);
  }
}

export interface Entry {
  readonly path: string;
  readonly kind: 'file' | 'directory' | 'other';
  readonly mode: number;
  readonly text: string;
}

/** Everything below a folder, with paths relative to it. */
export function walk(folder: string, below = ''): Entry[] {
  return readdirSync(join(folder, below)).flatMap((name) => {
    const path = join(below, name);
    const stat = lstatSync(join(folder, path));
    const kind = stat.isFile() ? 'file' : stat.isDirectory() ? 'directory' : 'other';
    const text = kind === 'file' ? readFileSync(join(folder, path), 'latin1') : '';
    const entry: Entry = { path, kind, mode: stat.mode & 0o777, text };
    return kind === 'directory' ? [entry, ...walk(folder, path)] : [entry];
  });
}

/** What must not stand raw in a line for a terminal, a log, a label or a key; line breaks between lines aside. */
export const rawControls = /(?!\n)[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/u;
