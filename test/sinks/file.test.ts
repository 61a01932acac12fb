import { access, mkdir, readdir, readFile, rename, stat, symlink, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { createFileSink } from '../../src/sinks/file.js';
import { recordName } from '../../src/sinks/names.js';
import { describeSink, hostileKeys } from './conformance.js';
import { lines, linesIn, litter, outcome, page, target, tempDir } from './fixtures.js';

for (const gzip of [false, true]) {
  describeSink(gzip ? 'file, gzip' : 'file', async () => {
    const dir = join(await tempDir(), 'results');
    const sink = createFileSink({ dir, gzip });
    return {
      sink,
      another: () => createFileSink({ dir, gzip }),
      items: (of) => linesIn(sink.destination(of)),
      records: (of) =>
        readdir(join(sink.destination(of), 'records')).then(
          (names) => names.length,
          () => 0,
        ),
      async refuse() {
        await rename(dir, `${dir}-away`);
        return () => rename(`${dir}-away`, dir);
      },
    };
  });
}

async function fileSink(gzip = false) {
  const dir = join(await tempDir(), 'results');
  return { dir, sink: createFileSink({ dir, gzip }) };
}

describe('file sink: layout', () => {
  it('lies as the contract says, with nothing unpublished left', async () => {
    const { dir, sink } = await fileSink();
    const of = target('plumbers-austin');
    await sink.writePage(of, page(0));
    await sink.writeRecord(of, { key: 'OUTPUT', contentType: 'application/json', body: Buffer.from('{}') });
    await sink.settle(of, outcome(of));
    const place = join(dir, 'batch=leads', 'scrape=plumbers-austin');
    expect(sink.destination(of)).toBe(place);
    const visible = (await readdir(place)).filter((name) => !name.startsWith('.')).sort();
    expect(visible).toEqual(['outcome.json', 'page-000000.ndjson', 'records']);
    expect(await readdir(join(place, 'records'))).toEqual(['OUTPUT.json']);
    expect(await readFile(join(place, 'page-000000.ndjson'), 'utf8')).toBe(`${lines(0).join('\n')}\n`);
    expect(await litter(dir)).toEqual([]);
    for (const name of visible) {
      const mode = (await stat(join(place, name))).mode & 0o777;
      expect(mode & ~(name === 'records' ? 0o750 : 0o640)).toBe(0);
    }
  });

  it('keeps an earlier attempt whole under .attempts', async () => {
    const { sink } = await fileSink();
    const [first, second] = [target('a', 1), target('a', 2)];
    await sink.writePage(first, page(0, 'old'));
    await sink.writeRecord(first, { key: 'LOG', contentType: 'text/plain', body: Buffer.from('log') });
    await sink.settle(first, outcome(first, { outcome: 'failed' }));
    await sink.begin(second);
    const kept = join(sink.destination(first), '.attempts', '1');
    expect((await readdir(kept)).sort()).toEqual(['outcome.json', 'page-000000.ndjson', 'records']);
    expect(await linesIn(kept)).toEqual(lines(0, 'old'));
  });

  it('keeps the page format an attempt began with when the configuration changes', async () => {
    const { dir, sink } = await fileSink(false);
    const packing = createFileSink({ dir, gzip: true });
    const of = target('format');
    await sink.writePage(of, page(0));
    expect(await packing.writePage(of, page(0))).toMatchObject({ existed: true });
    await packing.writePage(of, page(1));
    expect(await linesIn(sink.destination(of))).toEqual([...lines(0), ...lines(1)]);
    await packing.writePage({ ...of, attempt: 2 }, page(0));
    expect(await readdir(sink.destination(of))).toContain('page-000000.ndjson.gz');
  });

  it('removes what a crashed writer left unpublished, at begin and at settle', async () => {
    const { dir, sink } = await fileSink();
    const of = target('stale');
    await sink.begin(of);
    const leave = () => writeFile(join(sink.destination(of), '.attempt-1', 'open', '.tmp-dead'), 'half');
    await leave();
    await mkdir(join(sink.destination(of), '.new-dead'));
    await createFileSink({ dir, gzip: false }).begin(of);
    expect(await litter(dir)).toEqual([]);
    await leave();
    await sink.settle(of, outcome(of));
    expect(await litter(dir)).toEqual([]);
  });
});

describe('file sink: crash between the steps of a retirement', () => {
  // Each is a state in which a process can die while it makes room for attempt 2.
  const states: Record<string, (place: string) => Promise<void>> = {
    closed: (place) => rename(join(place, '.attempt-1/open'), join(place, '.attempt-1/moving')),
    'half moved': async (place) => {
      await rename(join(place, '.attempt-1/open'), join(place, '.attempt-1/moving'));
      await rename(join(place, 'page-000000.ndjson'), join(place, '.attempt-1/moving/page-000000.ndjson'));
    },
    'moved, not archived': async (place) => {
      await rename(join(place, '.attempt-1/open'), join(place, '.attempt-1/moving'));
      for (const name of ['page-000000.ndjson', 'page-000001.ndjson', 'outcome.json']) {
        await rename(join(place, name), join(place, '.attempt-1/moving', name));
      }
      await mkdir(join(place, '.attempts'));
    },
  };
  for (const [name, crash] of Object.entries(states)) {
    it(`${name}: whoever comes next finishes it`, async () => {
      const { dir, sink } = await fileSink();
      const [first, third] = [target('c', 1), target('c', 3)];
      await sink.writePage(first, page(0, 'old'));
      await sink.writePage(first, page(1, 'old'));
      await sink.settle(first, outcome(first, { outcome: 'failed' }));
      const place = sink.destination(first);
      await crash(place);
      await createFileSink({ dir, gzip: false }).writePage(third, page(0, 'new'));
      expect(await linesIn(place)).toEqual(lines(0, 'new'));
      expect(await linesIn(join(place, '.attempts', '1'))).toEqual([...lines(0, 'old'), ...lines(1, 'old')]);
      expect(await readdir(join(place, '.attempts', '1'))).toContain('outcome.json');
    });
  }
});

describe('file sink: nothing leaves the directory', () => {
  it.each(['../up', '.', '..', 'a/b', '', 'nul\0', '.hidden', 'x'.repeat(200)])(
    'refuses %j as batch or id',
    async (name) => {
      const { dir, sink } = await fileSink();
      const bad = { code: 'job_invalid' };
      await expect(sink.begin({ ...target('x'), id: name })).rejects.toMatchObject(bad);
      await expect(sink.writePage({ ...target('x'), batch: name }, page(0))).rejects.toMatchObject(bad);
      await expect(sink.find(name, 'x')).rejects.toMatchObject(bad);
      expect(await readdir(dirname(dir))).toEqual([]);
    },
  );

  it.each([
    'batch=leads',
    'batch=leads/scrape=x',
    'batch=leads/scrape=x/records',
    'batch=leads/scrape=x/.attempt-1',
  ])('refuses a symbolic link at %s', async (place) => {
    const { dir, sink } = await fileSink();
    const outside = await tempDir();
    await mkdir(dirname(join(dir, place)), { recursive: true });
    await symlink(outside, join(dir, place));
    const write = sink.writeRecord(target('x'), {
      key: 'K',
      contentType: 'text/plain',
      body: Buffer.from('x'),
    });
    await expect(write).rejects.toMatchObject({ name: 'SinkHeldError', reason: 'denied' });
    expect(await readdir(outside)).toEqual([]);
  });

  it('does not read an outcome through a symbolic link', async () => {
    const { dir, sink } = await fileSink();
    const of = target('x');
    await mkdir(sink.destination(of), { recursive: true });
    await symlink('/etc/hostname', join(sink.destination(of), 'outcome.json'));
    await expect(sink.find(of.batch, of.id)).rejects.toMatchObject({ name: 'SinkHeldError' });
    expect(await readdir(dir)).toEqual(['batch=leads']);
  });

  it('names records within 200 bytes of safe characters, never hidden', () => {
    const names = hostileKeys.map((key) => recordName(key, 'text/plain'));
    expect(new Set(names).size).toBe(names.length);
    for (const name of names) expect(name).toMatch(/^[A-Za-z0-9_%~-][A-Za-z0-9._%~-]{0,199}$/);
  });

  it.each([
    ['application/json; charset=utf-8', 'json'],
    ['IMAGE/PNG', 'png'],
    ['application/ld+json', 'json'],
    ['text/x-unheard-of', 'txt'],
    ['../../etc', 'bin'],
    ['', 'bin'],
  ])('takes the extension of %j from a fixed list', (type, extension) => {
    expect(recordName('key.v1', type)).toBe(`key.v1.${extension}`);
  });
});

describe('file sink: the base directory', () => {
  it('is made once, and never again when it vanishes under a running process', async () => {
    const { dir, sink } = await fileSink();
    await sink.check();
    await rename(dir, `${dir}-unmounted`);
    await expect(sink.check()).rejects.toMatchObject({
      reason: 'missing',
      message: expect.stringContaining(dir),
    });
    await expect(access(dir)).rejects.toThrow();
  });

  it('leaves no probe behind', async () => {
    const { dir, sink } = await fileSink();
    await Promise.all([sink.check(), sink.check()]);
    expect(await readdir(dir)).toEqual([]);
  });
});
