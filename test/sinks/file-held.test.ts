import { execFileSync, spawnSync } from 'node:child_process';
import { chmod, open, readdir, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { SinkHeldError } from '../../src/sinks/contract.js';
import { linkOnce } from '../../src/sinks/durable.js';
import { createFileSink } from '../../src/sinks/file.js';
import { asHeld } from '../../src/sinks/held.js';
import { lines, linesIn, litter, outcome, page, target, tempDir } from './fixtures.js';

interface SmallDisk {
  readonly dir: string;
  fill(): Promise<void>;
  free(): Promise<void>;
}

const mounted: string[] = [];
afterAll(() => {
  for (const dir of mounted) execFileSync('umount', [dir]);
});

/** A real file system of 256 KB; null where this user may not mount one. */
async function tmpfs(): Promise<SmallDisk | null> {
  const dir = await tempDir();
  if (spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=256k', 'none', dir]).status !== 0) return null;
  mounted.push(dir);
  const ballast = join(dir, 'ballast');
  return {
    dir,
    fill: () => writeFile(ballast, Buffer.alloc(1_048_576)).catch(() => undefined),
    free: () => rm(ballast),
  };
}

/** Everywhere: the kernel refuses this process to write more than 64 bytes into any file. */
async function fileSizeLimit(): Promise<SmallDisk> {
  const limit = (soft: string) => execFileSync('prlimit', ['--pid', String(process.pid), `--fsize=${soft}:`]);
  return {
    dir: await tempDir(),
    fill: async () => void limit('64'),
    free: async () => void limit('unlimited'),
  };
}

const disk = await tmpfs();
const disks: [string, SmallDisk][] = [['a file size limit', await fileSizeLimit()]];
if (disk) disks.push(['a full file system', disk]);

describe.each(disks)('file sink on %s', (_name, small) => {
  it('holds, shows nothing partial, and goes on when there is room', async () => {
    const sink = createFileSink({ dir: small.dir, gzip: false });
    const of = target('full');
    await sink.writePage(of, page(0));
    const full = {
      name: 'SinkHeldError',
      reason: 'full',
      message: expect.stringContaining('free some space'),
    };
    const before = await readdir(sink.destination(of));
    await small.fill();
    try {
      await expect(sink.writePage(of, page(1))).rejects.toMatchObject(full);
      await expect(sink.settle(of, outcome(of))).rejects.toMatchObject(full);
      await expect(sink.check()).rejects.toMatchObject(full);
      expect(await readdir(sink.destination(of))).toEqual(before);
      expect(await litter(small.dir)).toEqual([]);
    } finally {
      await small.free();
    }
    await sink.check();
    await sink.writePage(of, page(1));
    await sink.settle(of, outcome(of));
    expect(await linesIn(sink.destination(of))).toEqual([...lines(0), ...lines(1)]);
  });
});

describe('file sink whose folder is gone', () => {
  it('does not take that for one in which nothing was ever settled', async () => {
    const dir = await tempDir();
    const sink = createFileSink({ dir, gzip: false });
    const of = target('gone');
    await sink.writePage(of, page(0));
    await sink.settle(of, outcome(of));
    await rename(dir, `${dir}.away`);
    const missing = { name: 'SinkHeldError', reason: 'missing' };
    await expect(sink.find(of.batch, of.id)).rejects.toMatchObject(missing);
    await expect(sink.lastAttempt(of.batch, of.id)).rejects.toMatchObject(missing);
    await rename(`${dir}.away`, dir);
    expect(await sink.find(of.batch, of.id)).toMatchObject({ outcome: { id: of.id } });
    expect(await sink.find(of.batch, 'another')).toBeNull();
  });

  it('knows nothing of a folder that was never there', async () => {
    const sink = createFileSink({ dir: join(await tempDir(), 'never'), gzip: false });
    expect(await sink.find('b', 'x')).toBeNull();
    expect(await sink.lastAttempt('b', 'x')).toBe(0);
  });
});

describe('file sink: reasons of a hold', () => {
  it.each([
    ['ENOSPC', 'full'],
    ['EDQUOT', 'full'],
    ['EFBIG', 'full'],
    ['EACCES', 'denied'],
    ['EPERM', 'denied'],
    ['EROFS', 'denied'],
    ['ENOENT', 'missing'],
    ['ENOTDIR', 'missing'],
    ['ESTALE', 'unreachable'],
    ['EIO', 'other'],
    ['EMFILE', 'other'],
  ])('%s is %s', (code, reason) => {
    const error = Object.assign(new Error(code), { code, syscall: 'write' });
    expect(asHeld(error, '/results')).toMatchObject({ reason, message: expect.stringContaining(code) });
  });

  it('is full on a device that really is', async () => {
    const device = await open('/dev/full', 'w');
    const error: unknown = await device.writeFile('x').catch((reason: unknown) => reason);
    await device.close();
    expect(asHeld(error, '/results')).toMatchObject({ reason: 'full' });
  });

  it('leaves faults of our own as they are', () => {
    const fault = new TypeError('x is not a function');
    expect(asHeld(fault, '/results')).toBe(fault);
  });

  it('says so when the file system has no hard links', async () => {
    // Linux refuses a hard link to a directory with the same error that vfat has for every link.
    const dir = await tempDir();
    const refused = linkOnce(dir, join(dir, 'link'), dir);
    await expect(refused).rejects.toBeInstanceOf(SinkHeldError);
    await expect(refused).rejects.toThrow(/without hard links/);
  });

  it('is denied where this user may not write', async () => {
    const dir = await tempDir();
    await chmod(dir, 0o500);
    // Root writes everywhere, so the check runs as somebody else when these tests run as root.
    const code = `import('${new URL('../../src/sinks/file.ts', import.meta.url).href}').then(async ({ createFileSink }) => {
      if (process.getuid() === 0) process.setuid(65534);
      const error = await createFileSink({ dir: process.argv[1], gzip: false }).check().catch((e) => e);
      process.stdout.write(String(error?.reason));
    })`;
    const child = spawnSync(process.execPath, ['--import', 'tsx', '-e', code, dir], { encoding: 'utf8' });
    expect(child.stdout).toBe('denied');
  });
});
