import { constants, createReadStream } from 'node:fs';
import { lstat, open } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import type { Readable } from 'node:stream';
import { createGunzip } from 'node:zlib';
import { kindOf } from './durable.js';
import { errnoOf } from './held.js';
import { assertPathSegment, pageName } from './names.js';

/** A page on disk, as a list shows it. */
export interface PageEntry {
  readonly index: number;
  /** Of the file: packed pages are smaller than what is in them. */
  readonly bytes: number;
  /** When it became durable, milliseconds since 1970. */
  readonly writtenAt: number;
}

/** A part of a page, unpacked, as it was written. */
export interface PagePart {
  readonly data: Buffer;
  /** Byte to go on at; null: that was the end. */
  readonly next: number | null;
}

/** Reads the pages of the file sink (design A5) for people, in bounded parts. Paths are made of checked names alone. */
export class PageReader {
  readonly #base: string;

  constructor(dir: string) {
    this.#base = resolve(dir);
  }

  /** The pages `from … from + limit - 1` as far as they are there. Names follow from numbers: no folder is listed. */
  async list(batch: string, id: string, from: number, limit: number): Promise<PageEntry[]> {
    const dir = await this.#dir(batch, id);
    if (dir === null) return [];
    const entries: PageEntry[] = [];
    for (let index = from; index < from + limit && index <= 999_999; index += 1) {
      const entry = await find(dir, index);
      if (entry === null) break;
      entries.push({ index, bytes: entry.size, writtenAt: entry.mtimeMs });
    }
    return entries;
  }

  /**
   * At most `maxBytes` of a page from byte `offset`, cut after a line, or between two characters of a line that is longer.
   * @returns null when there is no such page
   */
  async read(
    batch: string,
    id: string,
    index: number,
    offset: number,
    maxBytes: number,
  ): Promise<PagePart | null> {
    const dir = await this.#dir(batch, id);
    const entry = dir === null ? null : await find(dir, index);
    if (entry === null) return null;
    const file = await open(entry.path, constants.O_RDONLY | constants.O_NOFOLLOW);
    const packed = entry.path.endsWith('.gz');
    const raw = createReadStream('', {
      fd: file,
      ...(packed ? {} : { start: offset, end: offset + maxBytes }),
    });
    const stream = packed ? raw.pipe(createGunzip()) : raw;
    raw.on('error', (error) => stream.destroy(error));
    try {
      return cut(await collect(stream, packed ? offset : 0, maxBytes + 1), offset, maxBytes);
    } finally {
      stream.destroy();
      raw.destroy();
    }
  }

  /** null when there is no folder of the scrape, or something else in its place. */
  async #dir(batch: string, id: string): Promise<string | null> {
    const parent = join(this.#base, `batch=${assertPathSegment('batch', batch)}`);
    const dir = join(parent, `scrape=${assertPathSegment('id', id)}`);
    const kinds = await Promise.all([kindOf(parent), kindOf(dir)]);
    return kinds.every((kind) => kind === 'dir') ? dir : null;
  }
}

async function find(
  dir: string,
  index: number,
): Promise<{ path: string; size: number; mtimeMs: number } | null> {
  for (const packed of [false, true]) {
    const path = join(dir, pageName(index, packed));
    try {
      const info = await lstat(path);
      if (info.isFile()) return { path, size: info.size, mtimeMs: info.mtimeMs };
    } catch (error) {
      if (errnoOf(error) !== 'ENOENT') throw error;
    }
  }
  return null;
}

/** Up to `max` bytes after the first `skip`; the rest is not read. */
async function collect(stream: Readable, skip: number, max: number): Promise<Buffer> {
  const parts: Buffer[] = [];
  let passed = 0;
  let kept = 0;
  for await (const chunk of stream) {
    const bytes = (chunk as Buffer).subarray(Math.max(0, skip - passed));
    passed += (chunk as Buffer).length;
    if (bytes.length === 0) continue;
    parts.push(bytes.subarray(0, max - kept));
    kept += parts.at(-1)?.length ?? 0;
    if (kept >= max) break;
  }
  return Buffer.concat(parts);
}

const newline = 0x0a;

function cut(bytes: Buffer, offset: number, maxBytes: number): PagePart {
  if (bytes.length <= maxBytes) return { data: bytes, next: null };
  const line = bytes.lastIndexOf(newline, maxBytes - 1);
  let end = line >= 0 ? line + 1 : maxBytes;
  // 10xxxxxx goes on with the character before it.
  while (line < 0 && end > maxBytes - 4 && ((bytes[end] ?? 0) & 0xc0) === 0x80) end -= 1;
  return { data: bytes.subarray(0, end), next: offset + end };
}
