import { readdirSync } from 'node:fs';
import { dirname } from 'node:path';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { createLogger } from '../../src/logger.js';
import { createMetrics } from '../../src/metrics/index.js';
import { Folder } from '../cli/setup.js';
import { type Sim, startSim } from '../sim/index.js';
import { Fleet } from '../workers/fleet.js';
import { Front } from './front.js';
import { dumpRedis, rawControls, walk } from './traces.js';

const tool = 'trudax/yellow-pages-us-scraper';

/** What a producer or a server may put where a name, an id or a sentence belongs. */
const hostile: Record<string, string> = {
  climbing: '../../../../tmp/trawl-escaped',
  absolute: '/tmp/trawl-escaped',
  windows: '..\\..\\trawl-escaped',
  encoded: '%2e%2e%2ftrawl-escaped',
  nul: 'a\0b',
  lines: 'one\ntwo\r\nthree',
  long: 'x'.repeat(10_240),
  lookalike: 'аррle․com/сrаwlеr',
  proto: '__proto__',
  constructor: 'constructor',
  escapes: '\u001b[2J\u001b]0;owned\u0007\u001b[31m',
  c1: '\u009b31m\u0085',
  bidi: '\u202egnp.exe\u2066\u200b\ufeff',
  separators: '\u2028\u2029',
  label: 'x"} 1\ntrawl_fake{a="b',
  dots: '..',
  empty: '',
};

let sim: Sim;
let front: Front;
let fleet: Fleet;
let folder: Folder;
const lines: string[] = [];
const metrics = createMetrics({ version: 'test', servers: { apify: { tools: [tool] } } });

beforeAll(async () => {
  sim = await startSim({ conditions: { mix: 'fixed' } });
  front = await Front.open(sim.url);
  const servers = {
    apify: {
      url: front.url,
      token: 'some-token',
      tools: [tool],
      limits: { runs: 50, requestsPerSecond: 500 },
    },
  };
  fleet = await Fleet.inFrontOf(servers);
  folder = new Folder(servers, {
    redis: { url: fleet.redis.url },
    results: { dir: fleet.config.results.dir },
  });
  const log = createLogger({ level: 'trace', destination: { write: (line) => lines.push(line) } });
  fleet.queue.setMaxListeners(0);
  await fleet.daemon({ log, metrics });
});
afterAll(async () => {
  await fleet.close();
  await Promise.all([front.close(), sim.close()]);
  folder.remove();
});

const entries = Object.entries(hostile);
const job = { tool, input: { sim: { runSecs: 0.1, items: 1 } } };

/** The same place of a job document, filled with each hostile text. */
const places: Record<string, (text: string) => Record<string, unknown>> = {
  id: (text) => ({ ...job, id: text }),
  batch: (text) => ({ ...job, batch: text }),
  tool: (text) => ({ ...job, tool: text }),
  server: (text) => ({ ...job, server: text }),
  key: (text) => ({ ...job, [text === '__proto__' ? 'proto' : text]: 1 }),
  record: (text) => ({ ...job, records: [text] }),
  field: (text) => ({ ...job, fields: [text] }),
  option: (text) => ({ ...job, options: { build: text } }),
  meta: (text) => ({ ...job, meta: { row: text } }),
  input: (text) => ({ ...job, input: { ...job.input, query: text } }),
};

/** Places that hold a name, and the texts that are unusual and still good ones in some of them. */
const named = new Set(['id', 'batch', 'tool', 'server', 'option']);
const wellFormed = new Set(['constructor', 'proto', 'dots']);

/** What is left of it all: nothing outside, and nothing raw in what people and programs read line by line. */
async function mustBeClean(): Promise<void> {
  const { prefix } = fleet.config;
  const outside = walk(fleet.dir).map(({ path }) => path.split('/')[0]);
  expect(new Set(outside)).toEqual(new Set(['results', 'trawl.yaml']));
  const escaped = [fleet.dir, dirname(fleet.dir), folder.path, '/tmp', process.cwd()].flatMap((dir) =>
    readdirSync(dir).filter((name) => name.includes('escaped')),
  );
  expect(escaped).toEqual([]);
  for (const { path, kind } of walk(fleet.config.results.dir)) {
    expect(path).toMatch(/^[\x21-\x7e]+$/);
    expect(path).toMatch(
      /^batch=[\w-]+(\/scrape=[\w.-]+(\/(page-\d{6}\.ndjson|outcome\.json|records(\/[\w.%~-]+)?|\.attempt\S*))?)?$/,
    );
    expect(kind).not.toBe('other');
  }
  // A producer's own BullMQ job has the name its producer gave it; every other key is ours.
  const keys = [...(await dumpRedis(fleet.client)).keys()];
  expect(keys.filter((key) => !key.startsWith(prefix))).toEqual([]);
  const ours = keys.filter((key) => !key.startsWith(`${prefix}:scrape:`));
  expect(ours.filter((key) => rawControls.test(key) || key.length > 500)).toEqual([]);
  expect(
    lines.filter((line) => rawControls.test(line.slice(0, -1)) || line.slice(0, -1).includes('\n')),
  ).toEqual([]);
  const text = await metrics.text();
  expect(text).not.toMatch(rawControls);
  for (const line of text.trim().split('\n')) expect(line).toMatch(/^(#|trawl_|process_|nodejs_|$)/);
  expect(({} as Record<string, unknown>).polluted).toBeUndefined();
}

async function mustPrintPlainly(...args: string[]): Promise<void> {
  const { out, err } = await folder.trawl(...args);
  const raw = rawControls.exec(out + err);
  expect(
    raw === null ? '' : (out + err).slice(Math.max(0, raw.index - 80), raw.index + 20),
    args.join(' '),
  ).toBe('');
}

it('through BullMQ: every job ends with an outcome, and nothing gets out', async () => {
  const jobs = Object.entries(places).flatMap(([place, make]) =>
    entries.map(([name, text]) => ({ id: `default.${place}-${name}`, data: make(text) })),
  );
  // Names that BullMQ itself takes.
  const named = entries
    .filter(([, text]) => text !== '' && !text.includes(':') && text.length < 1_000)
    .map(([, text]) => ({ id: `default.${text}`, data: { ...job } }));
  for (const { id, data } of [...jobs, ...named]) await fleet.queue.add('scrape', data, { jobId: id });
  for (const timestamp of [-1, 1e300, 8.64e15 + 1, 0.5]) {
    await fleet.queue.add('scrape', job, {
      jobId: `default.at-${String(timestamp).replace(/\W/g, '-')}`,
      timestamp,
    });
  }
  const ids = [...jobs, ...named].map(({ id }) => id);
  const outcomes = await Promise.all(ids.map((id) => fleet.outcome(id)));
  const ends = new Set(outcomes.map(({ outcome }) => outcome));
  expect(ends).toEqual(new Set(['succeeded', 'rejected']));
  for (const { message, id, batch } of outcomes) {
    expect(message).not.toMatch(rawControls);
    expect(`${batch}.${id}`).toMatch(/^[\w-]{1,128}\.[\w.-]{1,128}$/);
  }
  await vi.waitFor(
    async () => {
      const { waiting, active, delayed, 'waiting-children': parked } = await fleet.queue.getJobCounts();
      expect({ waiting, active, delayed, parked }).toEqual({ waiting: 0, active: 0, delayed: 0, parked: 0 });
    },
    { timeout: 15_000, interval: 200 },
  );
  await mustBeClean();
  for (const args of [
    ['status'],
    ['status', '--json'],
    ['status', '--batch', 'default', '--json'],
    ['status', 'default.meta-c1'],
    ['status', 'default.meta-bidi', '--json'],
  ]) {
    await mustPrintPlainly(...args);
  }
}, 120_000);

it('through the intake stream and list: accepted or set aside with a reason', async () => {
  const { prefix } = fleet.config;
  const documents = Object.entries(places).flatMap(([place, make]) =>
    entries.map(([name, text]) => JSON.stringify({ id: `${place}-${name}`, ...make(text) })),
  );
  const texts = [
    ...documents,
    ...entries.map(([, text]) => text),
    '{"__proto__":{"polluted":true},"tool":"x"}',
  ];
  for (const text of texts) {
    await fleet.client.xadd(`${prefix}:intake`, '*', 'job', text, '\u001b[2J', '\0');
    await fleet.client.lpush(`${prefix}:intake:list`, text);
  }
  await vi.waitFor(
    async () => {
      expect(await fleet.client.llen(`${prefix}:intake:list`)).toBe(0);
      expect(await fleet.client.xlen(`${prefix}:intake`)).toBe(0);
      const { waiting, active, prioritized, 'waiting-children': parked } = await fleet.queue.getJobCounts();
      expect({ waiting, active, prioritized, parked }).toEqual({
        waiting: 0,
        active: 0,
        prioritized: 0,
        parked: 0,
      });
    },
    { timeout: 40_000, interval: 250 },
  );
  const rejects = await fleet.client.xrange(`${prefix}:intake:rejected`, '-', '+');
  expect(rejects.length).toBeGreaterThan(entries.length * 4);
  for (const [, fields] of rejects) expect(fields[fields.indexOf('reason') + 1]).not.toMatch(rawControls);
  await mustBeClean();
  await mustPrintPlainly('status');
}, 120_000);

it.each(Object.keys(places))('through a job file: %s', async (place) => {
  const documents = entries.map(([name, text]) => ({ id: `f-${place}-${name}`, ...places[place]?.(text) }));
  folder.write('jobs.ndjson', documents.map((document) => `${JSON.stringify(document)}\n`).join(''));
  await mustPrintPlainly('plan', 'jobs.ndjson');
  const { code, err } = await folder.trawl('submit', 'jobs.ndjson');
  expect(err).not.toMatch(rawControls);
  if (!named.has(place)) return;
  expect(code).toBe(2);
  for (const [index, [name]] of entries.entries()) {
    if (!wellFormed.has(name)) expect(err, name).toContain(`jobs.ndjson:${index + 1}: `);
  }
});

it('through what a server says: ids, names, sentences, content types and items', async () => {
  let turn = 0;
  const next = () => (entries[turn++ % entries.length] as [string, string])[1];
  front.rewrite = (called, result) => {
    const data = result.structuredContent as Record<string, unknown> | undefined;
    if (called === 'get-actor-run' && data !== undefined) {
      const { storages } = data as {
        storages: { datasets: Record<string, unknown>; keyValueStores: { default?: { keys?: unknown } } };
      };
      if (storages.keyValueStores.default) storages.keyValueStores.default.keys = Object.values(hostile);
      for (const [name, text] of entries) storages.datasets[text || name] ??= { id: 'ds42', itemCount: 1 };
      return {
        ...result,
        structuredContent: { ...data, statusMessage: next(), actorName: next(), summary: next() },
      };
    }
    if (called === 'get-key-value-store-record' && data !== undefined) {
      return { ...result, structuredContent: { ...data, contentType: next(), recordKey: next() } };
    }
    if (called === 'get-dataset-items' && Array.isArray(data?.items)) {
      return {
        ...result,
        structuredContent: { ...data, items: data.items.map(() => ({ [next()]: next() })) },
      };
    }
    return result;
  };
  const records = ['../../../../tmp/trawl-escaped', '..', '.hidden', 'a/b', 'ключ', '__proto__', 'OUTPUT'];
  const ids = entries.map(([name]) => `s-${name}`);
  for (const [index, id] of ids.entries()) {
    const asked = {
      runSecs: 0.2,
      items: index % 3,
      records: Object.fromEntries(records.filter((key) => key !== '__proto__').map((key) => [key, { a: 1 }])),
    };
    await fleet.add(id, { ...job, input: { sim: asked }, records });
  }
  front.instead = ({ tool: called, nth }) =>
    called === 'call-actor' && nth % 4 === 0
      ? { result: { isError: true, content: [{ type: 'text', text: `Input is not valid: ${next()}` }] } }
      : null;
  const outcomes = await Promise.all(ids.map((id) => fleet.outcome(id)));
  expect(new Set(outcomes.map(({ outcome }) => outcome))).toEqual(
    new Set(['succeeded', 'empty', 'rejected']),
  );
  for (const outcome of outcomes) {
    for (const text of [outcome.message, outcome.statusMessage ?? '', ...outcome.warnings])
      expect(text).not.toMatch(rawControls);
  }
  const written = walk(fleet.config.results.dir).filter(({ path }) => path.includes('/records/'));
  expect(written.length).toBeGreaterThan(20);
  await mustBeClean();
  await mustPrintPlainly('status');
  // Items are what the server says they are; JSON itself keeps escapes and line breaks out of them.
  const { out } = await folder.trawl('export', '--batch', 'default');
  expect(out.trim().split('\n').length).toBeGreaterThan(10);
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
  expect(out).not.toMatch(/[\x00-\x09\x0b-\x1f]/);
}, 120_000);
