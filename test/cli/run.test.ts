import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { RedisProcess } from '../redis/redis-process.js';
import { type Sim, startSim } from '../sim/index.js';
import { Folder, places, yellowPages } from './setup.js';

let sim: Sim;
let redis: RedisProcess;
let folder: Folder;
/** Of the file that is run. */
let batch = '';

beforeAll(async () => {
  [sim, redis] = await Promise.all([
    startSim({ conditions: { mix: 'fixed' } }),
    RedisProcess.start('--hz', '100'),
  ]);
  folder = new Folder(
    {
      apify: {
        url: sim.url,
        token: 'simulated',
        limits: { runs: 20 },
        tools: [{ name: yellowPages, price: { start: 0.01, item: 0.001 } }, places],
      },
    },
    { redis: { url: redis.url } },
  );
});
afterAll(async () => {
  await sim?.close();
  await redis?.stop();
  folder?.remove();
});

/** A run of that many items, over before the first poll. */
const run = (id: string, items: number, more: object = {}, sim: object = {}) => ({
  id,
  input: { sim: { runSecs: 0.2, items, ...sim } },
  ...more,
});

const starts = () => sim.ledger.count('start');

describe('run', () => {
  it('asks above --confirm-over, and without a terminal wants --yes', async () => {
    folder.jobs('dear.ndjson', [run('a', 3, { options: { maxItems: 1000 } })]);
    const { code, err } = await folder.trawl('run', 'dear.ndjson', '--confirm-over', '0.5');
    expect(code).toBe(2);
    expect(err).toContain('1 scrape to start; cost: about $1.01\n');
    expect(err).toMatch(/That is more than \$0\.5 \(--confirm-over\)\. Nothing was submitted\.\n.*--yes/);
    expect(starts()).toBe(0);
  });

  it('Ctrl-C once waits for the runs under way; run again it resumes, repeats nothing, and groups by cause', async () => {
    await folder.trawl('pause', `apify/${places}`);
    const failed = { status: 'FAILED', statusMessage: 'proxy \u001b[2J blocked' };
    folder.jobs('cut.ndjson', [
      run('a', 1, {}, { runSecs: 3 }),
      run('b', 2, {}, { runSecs: 3 }),
      run('ok', 2, { tool: places }),
      run('none', 0, { tool: places }),
      run('strict', 0, { tool: places, onEmpty: 'fail' }),
      run('few', 1, { tool: places, minItems: 5 }),
      ...['f1', 'f2', 'f3'].map((id, items) => run(id, items + 2, { tool: places }, failed)),
      { id: 'bad', tool: places, input: { maxCrawledPlacesPerSearch: 'many' } },
    ]);
    const before = starts();
    const polls = sim.ledger.count('poll');
    const interrupt = until(() => starts() >= before + 2 && sim.ledger.count('poll') > polls).then(() =>
      process.emit('SIGINT', 'SIGINT'),
    );
    const cut = await folder.trawl('run', 'cut.ndjson', '--again');
    await interrupt;
    expect(cut.code).toBe(4);
    expect(cut.err).toMatch(
      /Finishing 2 runs under way \(at most \d+m\d*s? more\)\. Press Ctrl-C again to leave at once/,
    );
    batch = /^(cut-20\d{6}-\d{6}): 2 of 10 scrapes settled/.exec(cut.out)?.[1] ?? '';
    expect(batch).not.toBe('');
    expect(cut.out).toContain('8 scrapes left: run the same command again to resume');
    await folder.trawl('resume', `apify/${places}`);

    const { code, out, err } = await folder.trawl('run', 'cut.ndjson', '--batch', batch, '--json');
    expect(code).toBe(1);
    const summary = JSON.parse(out);
    expect(summary).toMatchObject({
      batch,
      scrapes: 10,
      submitted: 0,
      settled: 10,
      settledEarlier: 2,
      end: 'settled',
      exitCode: 1,
      outcomes: { succeeded: 3, empty: 2, low_count: 1, failed: 3, rejected: 1 },
    });
    expect(starts()).toBe(before + 9);
    expect(readdirSync(join(folder.path, 'results'))).toContain(`batch=${batch}`);
    const [first] = summary.causes;
    expect(first).toMatchObject({
      kind: 'failure',
      outcome: 'failed',
      scrapes: ['f1', 'f2', 'f3'].map((id) => `${batch}.${id}`),
    });
    expect(first.message).toContain('its N items were kept');
    const kinds = summary.causes.map((cause: { kind: string }) => cause.kind);
    expect(kinds).toEqual(['failure', 'failure', 'failure', 'warning', 'warning']);
    expect(cut.err + out + err).not.toContain('\u001b');
  });

  it('when all is settled it says when, names the two ways to run it anew, and ends with 2', async () => {
    const before = starts();
    const { code, out, err } = await folder.trawl('run', 'cut.ndjson', '--batch', batch);
    expect({ code, out }).toEqual({ code: 2, out: '' });
    const all = `All 10 scrapes of cut\\.ndjson \\(batch ${batch}\\) settled already, the last at 20\\d\\d-`;
    expect(err).toMatch(new RegExp(`^trawl: ${all}`, 'm'));
    expect(err).toMatch(/trawl run cut\.ndjson --batch NAME, or trawl run cut\.ndjson --again/);
    expect(starts()).toBe(before);
  });

  it('a known id with another input is a conflict: all are named and nothing is submitted', async () => {
    folder.jobs('cut.ndjson', [run('a', 30), run('b', 40), run('new', 1)]);
    const before = starts();
    for (const command of ['run', 'submit', 'plan']) {
      const { code, err } = await folder.trawl(command, 'cut.ndjson', '--batch', batch);
      expect(code).toBe(2);
      expect(err).toMatch(/\.a is known with another tool, input or server\n.*\.b is known/);
      expect(err).toContain('Nothing was submitted.');
    }
    expect(starts()).toBe(before);
  });
});

async function until(is: () => boolean): Promise<void> {
  while (!is()) await new Promise((resolve) => setTimeout(resolve, 20));
}
