import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { Estimate } from '../../src/cli/plan/estimate.js';
import { readHistory, type ToolHistory } from '../../src/cli/plan/history.js';
import { costLine, timeLines } from '../../src/cli/plan/text.js';
import { loadConfig } from '../../src/config.js';
import type { Scrape } from '../../src/scrape/types.js';

const config = loadConfig({
  env: {},
  cwd: '/',
  text: `
servers:
  apify:
    token: x
    limits: { runs: 5, requestsPerSecond: 20 }
    tools:
      - { name: a/priced, price: { start: 0.01, item: 0.002 } }
      - { name: a/flat, price: { start: 0.5 } }
      - a/plain
poll: { interval: 30s }
`,
});

const scrape = (tool: string, options: Scrape['options'] = {}): Scrape => ({
  id: 'x',
  batch: 'b',
  server: 'apify',
  tool,
  input: {},
  deadlineMs: 3_600_000,
  expiresInMs: null,
  priority: 3,
  retries: 0,
  minItems: 1,
  onEmpty: 'warn',
  options,
  fields: [],
  records: [],
  meta: null,
});
const past: ToolHistory = { runs: 8, usageUsd: 0.3, items: 100, pages: 3, seconds: 95 };

describe('the cost of a scrape', () => {
  const cases: [string, string, Scrape['options'], ToolHistory | null, number, string][] = [
    ['price, items from past runs', 'a/priced', {}, past, 0.21, 'about $0.21'],
    ['price, no more items than maxItems', 'a/priced', { maxItems: 50 }, past, 0.11, 'about $0.11'],
    ['price, items from maxItems', 'a/priced', { maxItems: 20 }, null, 0.05, 'about $0.05'],
    ['price of the start alone', 'a/flat', {}, null, 0.5, 'about $0.5'],
    [
      'nothing known of the items',
      'a/priced',
      {},
      null,
      0.01,
      'at least $0.01; what the items of 1 scrape cost',
    ],
    ['past runs', 'a/plain', {}, past, 0.3, 'about $0.3'],
    ['past runs, capped', 'a/plain', { maxTotalChargeUsd: 0.1 }, past, 0.1, 'about $0.1'],
    ['the cap alone', 'a/plain', { maxTotalChargeUsd: 2.5 }, null, 2.5, 'at most $2.50'],
    ['nothing', 'a/plain', {}, null, 0, 'unknown: there are no past runs'],
    ['past runs that told no cost', 'a/plain', {}, { ...past, usageUsd: null }, 0, 'unknown'],
  ];
  it.each(cases)('comes from %s', (_name, tool, options, history, usd, line) => {
    const estimate = new Estimate(config, new Map(history === null ? [] : [[`apify/${tool}`, history]]));
    estimate.add(scrape(tool, options));
    expect(estimate.usd).toBeCloseTo(usd);
    expect(costLine(estimate)).toContain(line);
  });

  it('adds up, and says what is left out', () => {
    const estimate = new Estimate(config, new Map());
    estimate.add(scrape('a/flat'));
    estimate.add(scrape('a/flat'));
    estimate.add(scrape('a/plain'));
    expect(costLine(estimate)).toBe('about $1.00; the cost of 1 scrape is unknown');
    expect(costLine(new Estimate(config, new Map()))).toBe('nothing, there is nothing to start');
  });
});

describe('the time', () => {
  it('is what the run slots or the request rate allow, whichever is slower', () => {
    const estimate = new Estimate(config, new Map([['apify/a/plain', past]]));
    for (let i = 0; i < 150; i += 1) estimate.add(scrape('a/plain'));
    // 95 s are seen by the fourth poll, at 120 s: 150 × 120 s over 5 slots; 8 calls each.
    expect(estimate.servers).toMatchObject([{ server: 'apify', hours: 1, limitedBy: 'run slots' }]);
    expect(estimate.tools).toMatchObject([{ scrapes: 150, calls: 1200, pastRuns: 8 }]);
    const [line] = timeLines(estimate, () => ({ runs: 5, rps: 20 }));
    expect(line).toBe('about 1h on apify: the 5 run slots limit it (the request rate alone: 1m)');
  });

  it('says so when durations are assumed', () => {
    const estimate = new Estimate(config, new Map());
    estimate.add(scrape('a/plain'));
    expect(estimate.assumesDurations).toBe(true);
    expect(timeLines(estimate, () => ({ runs: 5, rps: 20 }))[0]).toContain(
      'taking 2m for a run never seen before',
    );
  });
});

describe('the history', () => {
  it('averages what ran, and passes over what it cannot read', async () => {
    const dir = mkdtempSync(join(tmpdir(), 'trawl-history-'));
    const put = (id: string, text: string) => {
      mkdirSync(join(dir, 'batch=b', `scrape=${id}`), { recursive: true });
      writeFileSync(join(dir, 'batch=b', `scrape=${id}`, 'outcome.json'), text);
    };
    const outcome = {
      server: 'apify',
      tool: 'a/plain',
      runId: 'r',
      items: 10,
      pages: 1,
      durationSeconds: 20,
    };
    put('1', JSON.stringify({ ...outcome, usageUsd: 0.5 }));
    put('2', JSON.stringify({ ...outcome, items: 30, usageUsd: null }));
    put('3', JSON.stringify({ ...outcome, runId: null, usageUsd: null }));
    put('4', '{"server":"apify"}');
    put('5', 'no JSON');
    mkdirSync(join(dir, 'batch=b', 'scrape=6'));
    const history = await readHistory(dir);
    rmSync(dir, { recursive: true });
    expect([...history]).toEqual([
      ['apify/a/plain', { runs: 2, usageUsd: 0.5, items: 20, pages: 1, seconds: 20 }],
    ]);
    expect(await readHistory(join(dir, 'gone'))).toEqual(new Map());
  });
});
