/** Promise 10: a sink that refuses writes holds results and loses none; it goes on by itself. */
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { describe, it } from 'vitest';
import { type Sink, SinkHeldError } from '../../src/sinks/contract.js';
import { createFileSink } from '../../src/sinks/file.js';
import { Bench } from '../workers/harness.js';
import { backlog, gauge, quick, said, tally } from './broken.js';

interface Trouble {
  begin(): void;
  end(): void;
}
type Maker = (bench: Bench) => { readonly trouble: Trouble; readonly sink?: Sink };

/** Every write is refused, whatever it is. */
const refusing: Maker = (bench) => {
  const sink = createFileSink({ dir: bench.config.results.dir, gzip: false });
  let held = false;
  const guarded =
    <A extends unknown[], R>(work: (...args: A) => Promise<R>) =>
    async (...args: A): Promise<R> => {
      if (held) throw new SinkHeldError('unreachable', 'the store is away');
      return work(...args);
    };
  sink.begin = guarded(sink.begin.bind(sink));
  sink.writePage = guarded(sink.writePage.bind(sink));
  sink.writeRecord = guarded(sink.writeRecord.bind(sink));
  sink.settle = guarded(sink.settle.bind(sink));
  const hold = (value: boolean) => {
    held = value;
  };
  return { sink, trouble: { begin: () => hold(true), end: () => hold(false) } };
};

/** A file stands where the results folder was: what a lost mount looks like, and what stops even root. */
const replaced: Maker = ({ config }) => {
  const { dir } = config.results;
  return {
    trouble: {
      begin() {
        renameSync(dir, `${dir}.away`);
        writeFileSync(dir, '');
      },
      end() {
        rmSync(dir);
        renameSync(`${dir}.away`, dir);
      },
    },
  };
};

/** A file system of 512 KB that is full; where this user may not mount, the kernel refuses files of over 64 bytes. */
const full: Maker = (bench) => {
  const { dir } = bench.config.results;
  const mounted = spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=512k', 'none', dir]).status === 0;
  if (!mounted) {
    const limit = (soft: string) =>
      execFileSync('prlimit', ['--pid', String(process.pid), `--fsize=${soft}:`]);
    return { trouble: { begin: () => limit('64'), end: () => limit('unlimited') } };
  }
  bench.onClose(() => execFileSync('umount', ['-l', dir]));
  const ballast = join(dir, 'ballast');
  return {
    trouble: {
      begin() {
        try {
          writeFileSync(ballast, Buffer.alloc(1_048_576));
        } catch {
          // Full is what it should be.
        }
      },
      end: () => rmSync(ballast),
    },
  };
};

const cases: Record<string, Maker> = {
  'a sink that refuses everything': refusing,
  'a results folder that is gone': replaced,
  'a full disk': full,
};

describe.concurrent('results', () => {
  it.for(Object.entries(cases))('wait for %s', { timeout: 58_000 }, async ([_, make], { expect }) => {
    const bench = await Bench.open({
      limits: { runs: 20 },
      config: { results: { dir: 'results', pageBytes: 2_048 } },
    });
    try {
      mkdirSync(bench.config.results.dir, { recursive: true });
      const { trouble, sink } = make(bench);
      await bench.daemon({ timing: quick, ...(sink ? { sink } : {}) });
      // Pages, records and outcomes: some are cut off in the middle of their pages.
      const ids = await backlog(
        bench,
        12,
        { runSecs: 0.3, items: 12, itemBytes: 600 },
        { records: ['OUTPUT'] },
      );
      const pages = () => bench.sim.ledger.entries({ kind: ['read'] }).length;
      await expect.poll(pages, { timeout: 20_000, interval: 5 }).toBeGreaterThan(3);
      trouble.begin();
      await expect
        .poll(() => gauge(bench, 'trawl_sink_held'), { timeout: 15_000, interval: 200 })
        .toEqual({ '{sink="file"}': 1 });
      await delay(3_000);
      expect(await bench.queue.getCompletedCount()).toBeLessThan(12);
      trouble.end();
      expect(await tally(bench, ids, 40_000)).toEqual({ succeeded: 12 });
      for (const id of ids) {
        const dir = bench.resultsOf(id);
        const items = readdirSync(dir)
          .filter((name) => name.startsWith('page-'))
          .sort()
          .flatMap((name) => readFileSync(join(dir, name), 'utf8').trimEnd().split('\n'))
          .map((line) => (JSON.parse(line) as { _i: number })._i);
        expect(items).toEqual(Array.from({ length: 12 }, (_unused, index) => index));
      }
      expect(bench.sim.stats().starts).toBe(12);
      expect(said(bench, 'sink.held').length).toBeGreaterThan(0);
      await expect
        .poll(() => gauge(bench, 'trawl_sink_held'), { timeout: 5_000, interval: 200 })
        .toEqual({ '{sink="file"}': 0 });
    } finally {
      await bench.close();
    }
  });
});
