import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { loadConfig } from '../../src/config.js';
import type { Check } from '../../src/doctor/check.js';
import { checkNode, leastNode } from '../../src/doctor/node.js';
import { exitCodeOf, renderReport, reportJson } from '../../src/doctor/report.js';
import { checkResults, checkShared } from '../../src/doctor/results.js';
import { runDoctor, type Section } from '../../src/doctor/run.js';
import type { ScrapeServer, ServerDescription } from '../../src/mcp/port.js';
import { createRedis } from '../../src/redis/connection.js';
import { RedisProcess } from '../redis/redis-process.js';

const log = { debug() {}, info() {}, warn() {}, error() {} };
const cleanups: (() => unknown)[] = [];
let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'trawl-doctor-'));
});

afterEach(async () => {
  for (const clean of cleanups.splice(0).reverse()) await clean();
  rmSync(folder, { recursive: true });
});

describe('the Node that runs', () => {
  it.each([
    ['20.19.0', 'ok'],
    ['24.1.0', 'ok'],
    ['20.18.3', 'fail'],
    ['18.20.0', 'fail'],
  ])('%s: %s', (version, state) => {
    expect(checkNode(version).ok).toBe(state);
  });

  it('has to be what package.json asks for', () => {
    const text = readFileSync(join(import.meta.dirname, '../../package.json'), 'utf8');
    expect((JSON.parse(text) as { engines: { node: string } }).engines.node).toBe(`>=${leastNode}`);
  });
});

describe('the results directory', () => {
  it('is tried out, and left as it was', async () => {
    const dir = join(folder, 'new', 'results');
    const checks = await checkResults(dir);
    expect(checks.map((check) => check.name)).toEqual(['writable', 'hard links', 'free space']);
    expect(checks.slice(0, 2).map((check) => check.ok)).toEqual(['ok', 'ok']);
    expect(existsSync(join(folder, 'new'))).toBe(false);
  });

  it.each([
    ['a file', () => join(folder, 'file')],
    ['below a file', () => join(folder, 'file', 'deep', 'er')],
    // Node's own recursive mkdir spins for ever here.
    ['where no folder can be', () => '/proc/trawl/results'],
  ])('that is %s is a failure', async (_what, place) => {
    writeFileSync(join(folder, 'file'), '');
    expect(await checkResults(place())).toMatchObject([
      { name: 'writable', ok: 'fail', hint: expect.any(String) },
    ]);
  });

  it('is told from another one that a second machine uses', async () => {
    const redis = await RedisProcess.start();
    const client = createRedis({ url: redis.url, tls: false }, { role: 'producer', log });
    cleanups.push(
      () => redis.stop(),
      () => client.disconnect(),
    );
    const [one, two] = [join(folder, 'one'), join(folder, 'two')];
    expect(await checkShared(client, '{t}', one, 'a')).toMatchObject({
      ok: 'ok',
      message: expect.stringContaining('no other machine'),
    });
    expect(await checkShared(client, '{t}', one, 'b')).toMatchObject({
      ok: 'ok',
      message: expect.stringContaining('1 other'),
    });
    expect(await checkShared(client, '{t}', two, 'b')).toMatchObject({
      ok: 'warn',
      message: expect.stringMatching(/^a used/),
    });
    expect(await client.ttl('{t}:doctor:results')).toBeGreaterThan(0);
  });
});

const description: ServerDescription = {
  serverName: 's',
  serverVersion: '1',
  toolNames: [],
  tools: new Map([['acme/one', { toolName: 'acme--one', inputSchema: null }]]),
  missing: [],
  via: 'call-actor',
  waitSecsCap: 45,
  canList: true,
};

function doctor(yaml: string, value: ServerDescription = description) {
  const closed: string[] = [];
  const sections = runDoctor({
    cwd: folder,
    env: process.env,
    nodeVersion: '20.19.0',
    log,
    loadConfig: () => loadConfig({ text: yaml, cwd: folder, env: {} }),
    openServer: (server) =>
      ({
        describe: async () => ({ ok: true, value }),
        close: async () => void closed.push(server.name),
      }) as Partial<ScrapeServer> as ScrapeServer,
  });
  return sections.then((found) => ({ sections: found, closed, named: byName(found) }));
}

const byName = (sections: readonly Section[]) =>
  new Map(
    sections.flatMap(({ title, checks }) =>
      checks.map((check): [string, Check] => [`${title}: ${check.name}`, check]),
    ),
  );

const servers = 'servers: { apify: { token: t, tools: [acme/one] } }';

describe('the doctor', () => {
  it('starts a private Redis to look at it, and stops it', async () => {
    const { sections, closed, named } = await doctor(servers);
    expect(exitCodeOf(sections)).toBe(named.get('Results: free space')?.ok === 'ok' ? 0 : 3);
    expect(named.get('Redis (private): persistence')?.ok).toBe('ok');
    expect(closed).toEqual(['apify']);
    expect(existsSync(join(folder, '.trawl/redis/redis.sock'))).toBe(false);
  });

  it('goes on after an unreachable Redis, and shows no password', async () => {
    const unused = await RedisProcess.reserve();
    cleanups.push(() => unused.stop());
    const url = `redis://user:canary-password@127.0.0.1:${unused.port}`;
    const { sections, named } = await doctor(`redis: { url: "${url}" }\n${servers}`);
    expect(named.get('Redis: reachable')).toMatchObject({
      ok: 'fail',
      message: expect.stringContaining('ECONNREFUSED'),
    });
    expect(named.get('Server apify: tools')?.ok).toBe('ok');
    expect(exitCodeOf(sections)).toBe(2);
    expect(renderReport(sections, false) + reportJson(sections)).not.toContain('canary');
  });

  it('compares directories only with a Redis that others can use', async () => {
    const redis = await RedisProcess.start();
    cleanups.push(() => redis.stop());
    const { sections, named } = await doctor(`redis: { url: "${redis.url}" }\n${servers}`);
    expect(named.get('Results: shared')?.ok).toBe('ok');
    expect(named.get('Redis: persistence')?.ok).toBe('warn');
    expect(exitCodeOf(sections)).toBe(3);
  });

  it('says what is wrong with a configuration, every line of it', async () => {
    const { sections } = await doctor('servers: { apify: { token: t, tols: [a/b] } }\npol: 1\n');
    expect(sections.map((section) => section.title)).toEqual(['Node', 'Configuration']);
    expect(sections[1]?.checks[0]?.message.split('\n').length).toBeGreaterThan(1);
    expect(exitCodeOf(sections)).toBe(2);
  });

  it('goes on after a results directory that cannot be written', async () => {
    writeFileSync(join(folder, 'results'), '');
    const { sections, named } = await doctor(servers);
    expect(named.get('Results: writable')?.ok).toBe('fail');
    expect(exitCodeOf(sections)).toBe(2);
  });
});

describe('the report', () => {
  const sections: Section[] = [
    { title: 'Node', checks: [{ name: 'version', ok: 'ok', message: 'Node 20', hint: null }] },
    {
      title: 'Server a',
      checks: [
        { name: 'run list', ok: 'warn', message: 'not there', hint: 'use another' },
        { name: 'tools', ok: 'fail', message: 'one\ntwo', hint: 'do this\nor that' },
      ],
    },
  ];

  it('is aligned, says what to do, and is plain ASCII when nobody sees it', () => {
    const lines = [
      'Node',
      '  ok    version   Node 20',
      '',
      'Server a',
      '  warn  run list  not there',
      '                  -> use another',
      '  FAIL  tools     one',
      '                  two',
      '                  -> do this',
      '                     or that',
      '',
      '1 to fix, 1 worth a look, 1 in order.',
      '',
    ];
    expect(renderReport(sections, false).split('\n')).toEqual(lines);
  });

  it('has marks on a terminal', () => {
    const text = renderReport(sections, true);
    for (const mark of ['✓', '!', '✗', '→']) expect(text).toContain(mark);
  });

  it('is one document for programs', () => {
    expect(JSON.parse(reportJson(sections))).toEqual({ ok: false, exitCode: 2, sections });
    expect(reportJson([{ title: 'Node', checks: [] }])).toContain('"exitCode": 0');
  });
});
