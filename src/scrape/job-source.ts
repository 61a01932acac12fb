import { createReadStream, createWriteStream } from 'node:fs';
import { mkdtemp, open, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { TrawlError } from '../errors.js';
import { shortHash } from './canonical.js';
import { cleanText } from './clean-text.js';
import { isBatch } from './identity.js';

/** Where job lines come from: a file by path, or a stream such as stdin. */
export type JobLines = { readonly path: string } | { readonly stream: NodeJS.ReadableStream };

/** Job lines that can be read more than once; `close` removes what was spooled. */
export interface ReadableJobs {
  /** As shown in messages: the path, or `stdin`. */
  readonly label: string;
  /** Opens the lines from the start. @throws TrawlError `input_unreadable` when the file changed since it was opened. */
  read(): AsyncIterable<Buffer>;
  close(): Promise<void>;
}

/**
 * Opens job lines for several passes. Streams and pipes are spooled to a file that only this user may read.
 * @throws TrawlError `input_unreadable` for a missing file, a directory, one that may not be read.
 */
export async function openJobLines(lines: JobLines): Promise<ReadableJobs> {
  if ('stream' in lines) return spool(lines.stream, 'stdin');
  const label = cleanText(lines.path, 300);
  const info = await stat(lines.path).catch((error: NodeJS.ErrnoException) => {
    throw unreadable(label, error);
  });
  if (info.isDirectory()) throw unreadable(label, Object.assign(new Error(), { code: 'EISDIR' }));
  if (!info.isFile()) return spool(createReadStream(lines.path), label);
  return reopening(lines.path, label, async () => {});
}

async function spool(stream: NodeJS.ReadableStream, label: string): Promise<ReadableJobs> {
  const folder = await mkdtemp(join(tmpdir(), 'trawl-jobs-'));
  const remove = () => rm(folder, { recursive: true, force: true });
  try {
    const path = join(folder, 'jobs.ndjson');
    await pipeline(stream, createWriteStream(path, { mode: 0o600, flags: 'wx' }));
    return await reopening(path, label, remove);
  } catch (error) {
    await remove();
    throw unreadable(label, error as NodeJS.ErrnoException);
  }
}

async function reopening(path: string, label: string, close: () => Promise<void>): Promise<ReadableJobs> {
  const first = await fingerprint(path, label);
  return {
    label,
    async *read() {
      const file = await open(path, 'r').catch((error: NodeJS.ErrnoException) => {
        throw unreadable(label, error);
      });
      try {
        // What is submitted must be what was validated.
        if ((await fingerprint(path, label)) !== first) {
          throw new TrawlError('input_unreadable', `${label}: the file changed while it was being read`, {
            hint: 'Nothing more is submitted. Run it again when the file is complete.',
          });
        }
        yield* file.createReadStream({
          autoClose: false,
          highWaterMark: 256 * 1024,
        }) as AsyncIterable<Buffer>;
      } finally {
        await file.close();
      }
    },
    close,
  };
}

async function fingerprint(path: string, label: string): Promise<string> {
  const info = await stat(path, { bigint: true }).catch((error: NodeJS.ErrnoException) => {
    throw unreadable(label, error);
  });
  return `${info.dev}:${info.ino}:${info.size}:${info.mtimeNs}`;
}

function unreadable(label: string, error: NodeJS.ErrnoException): TrawlError {
  const known: Record<string, string> = {
    ENOENT: 'no such file',
    EISDIR: 'a directory',
    EACCES: 'a file that may not be read',
  };
  const found = known[error.code ?? ''] ?? cleanText(error.code ?? error.message, 80);
  return new TrawlError('input_unreadable', `${label}: expected a file of jobs, found ${found}`, {
    cause: error,
  });
}

/** The batch of a file whose jobs name none: its base name, made to fit the rules for batches. */
export function batchOfFile(path: string): string {
  const base = path.split(/[\\/]/).at(-1) ?? '';
  const stem = base.replace(/\.(ndjson|jsonl|json|txt)$/i, '');
  const fitting = stem
    .replace(/[^A-Za-z0-9_-]+/g, '-')
    .replace(/^[-_]+|-+$/g, '')
    .slice(0, 100);
  if (isBatch(fitting)) return fitting;
  return fitting === '' ? `batch-${shortHash(base).replace(/[-_]/g, '').slice(0, 8)}` : `batch-${fitting}`;
}
