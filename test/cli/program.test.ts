import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { accepts } from '../../src/redis/private-process.js';
import { type Sim, startSim } from '../sim/index.js';
import { Folder, Program, stopPrivateRedis, yellowPages } from './setup.js';

/** The built program as a process of its own: signals, exit codes, streams, and the private Redis. */
const root = fileURLToPath(new URL('../..', import.meta.url));
let build: string;
const sims: Sim[] = [];
const folders: Folder[] = [];
const programs: Program[] = [];

beforeAll(async () => {
  // Inside the checkout, so that it finds its packages.
  build = mkdtempSync(join(root, 'tmp-cli-build-'));
  const tsc = join(root, 'node_modules', '.bin', 'tsc');
  // It writes the program even when types are wrong somewhere; whether they are is checked elsewhere.
  spawnSync(tsc, ['-p', 'tsconfig.build.json', '--declaration', 'false', '--outDir', build], { cwd: root });
  spawnSync(process.execPath, ['scripts/copy-page.mjs', build], { cwd: root });
}, 60_000);
afterAll(async () => {
  for (const program of programs) program.kill('SIGKILL');
  for (const folder of folders) await stopPrivateRedis(socketOf(folder));
  for (const sim of sims) await sim.close();
  for (const folder of folders) folder.remove();
  rmSync(build, { recursive: true, force: true });
});

/** A folder with a simulator of its own. */
async function open(): Promise<{ folder: Folder; sim: Sim }> {
  const sim = await startSim({ conditions: { mix: 'fixed' } });
  sims.push(sim);
  const folder = new Folder({
    apify: { url: sim.url, token: 'x', limits: { runs: 2 }, tools: [yellowPages] },
  });
  folders.push(folder);
  return { folder, sim };
}

function trawl(folder: Folder, ...args: string[]): Program {
  const program = new Program(build, folder.path, args);
  programs.push(program);
  return program;
}

const socketOf = (folder: Folder) => join(folder.path, '.trawl', 'redis', 'redis.sock');

// Side by side, since each waits more than it works.
describe.concurrent('the program', { timeout: 150_000 }, () => {
  it('Ctrl-C twice leaves at once, takes its Redis along, and the next run takes up the runs that go on', async () => {
    const { folder, sim } = await open();
    const slow = ['a', 'b', 'c'].map((id) => ({ id, input: { sim: { runSecs: 4, items: 2 } } }));
    folder.jobs('slow.ndjson', slow);
    const first = trawl(folder, 'run', 'slow.ndjson');
    const polls = sim.ledger.count('poll');
    while (sim.ledger.count('poll') === polls) await delay(20);
    first.kill('SIGINT');
    await first.says(/Finishing 2 runs under way/);
    first.kill('SIGINT');
    expect(await first.ended).toEqual({ code: 4, signal: null });
    expect(first.stdout).toMatch(
      /Interrupted\. Runs under way go on at the server, .* 3 scrapes left: run the same command/,
    );
    expect(await accepts(socketOf(folder))).toBe(false);

    const config = readFileSync(join(folder.path, 'trawl.yaml'), 'utf8');
    folder.write('port.yaml', config.replace('port: 0', `port: ${sim.port}`));
    const second = trawl(folder, 'run', 'slow.ndjson', '--metrics', '--config', 'port.yaml');
    expect(await second.ended).toEqual({ code: 0, signal: null });
    expect(second.stdout).toMatch(
      /^slow: 3 of 3 scrapes settled in \d+s\n {2}3 succeeded\n {2}6 items, spent \$0\.\d+\n\nResults/,
    );
    expect(second.stdout).toContain("read_json_auto('results/batch=slow/scrape=*/page-*.ndjson'");
    expect(second.lines.join('\n')).toContain('No metrics: Cannot listen on');
    const page = readFileSync(join(folder.path, 'results/batch=slow/scrape=a/page-000000.ndjson'), 'utf8');
    expect(page.trim().split('\n')).toHaveLength(2);
    expect(sim.ledger.count('start')).toBe(3);
    expect(await accepts(socketOf(folder))).toBe(false);
  });

  it('work says what it does in one line, and ends with 0 on SIGTERM', async () => {
    const { folder } = await open();
    const work = trawl(folder, 'work');
    const line = JSON.parse(await work.says(/daemon\.started/));
    expect(line.msg).toMatch(
      /^working: Redis .*redis\.sock, metrics and health on http:\/\/127\.0\.0\.1:\d+$/,
    );
    const [metrics, live, ready] = await Promise.all(
      ['metrics', 'healthz', 'readyz'].map((path) => fetch(`${line.http}/${path}`)),
    );
    expect([metrics?.status, live?.status, ready?.status]).toEqual([200, 200, 200]);
    expect(await metrics?.text()).toContain('trawl_scrapes_settled_total{server="apify"');
    work.kill('SIGTERM');
    expect(await work.ended).toEqual({ code: 0, signal: null });
    expect(work.stdout).toBe('');
  });

  it('log-level reaches all workers without a restart, says what is wrong with it, and is taken back', async () => {
    const { folder } = await open();
    const workers = [trawl(folder, 'work'), trawl(folder, 'work')];
    for (const work of workers) await work.says(/daemon\.started/);
    const set = trawl(folder, 'log-level', 'mcp', 'debug', '--for', '10m');
    expect(await set.ended).toMatchObject({ code: 0 });
    expect(set.stdout).toMatch(/^mcp {5}debug {3}for \S+, then info$/m);
    expect(set.stdout).toMatch(/^redis {3}info$/m);
    for (const work of workers) await work.says(/"changed":\["mcp: info → debug"\]/);
    const jobs = ['a', 'b', 'c', 'd'].map((id) => ({ id, input: { sim: { runSecs: 0.1, items: 1 } } }));
    folder.jobs('jobs.ndjson', jobs);
    await trawl(folder, 'submit', 'jobs.ndjson').ended;
    await Promise.any(workers.map((work) => work.says(/"level":"debug".*"module":"mcp"/)));
    await trawl(folder, 'log-level', 'reset').ended;
    for (const work of workers) await work.says(/"changed":\["mcp: debug → info"\]/);
    for (const [args, said] of [
      [['mpc', 'debug'], 'There is no module "mpc".\nDid you mean mcp?'],
      [['mcp', 'debgu'], 'There is no level "debgu".\nDid you mean debug?'],
      [['wran'], 'There is no level or module "wran".\nDid you mean warn?'],
      [['mcp'], 'Which level should mcp have?'],
      [['debug', '--for', '2d'], '--for: expected at most 24h, found 2d.'],
    ] as const) {
      const wrong = trawl(folder, 'log-level', ...args);
      expect((await wrong.ended).code).toBe(2);
      expect(wrong.lines.join('\n')).toContain(said);
    }
    for (const work of workers) work.kill('SIGTERM');
    for (const work of workers) await work.ended;
  });

  it('a second SIGTERM ends work at once', async () => {
    const { folder, sim } = await open();
    folder.jobs('jobs.ndjson', [{ id: 'a', input: { sim: { faults: [{ op: 'start', kind: 'hang' }] } } }]);
    await trawl(folder, 'submit', 'jobs.ndjson').ended;
    const work = trawl(folder, 'work');
    const starts = sim.stats().faultsFired.hang ?? 0;
    await work.says(/daemon\.started/);
    while ((sim.stats().faultsFired.hang ?? 0) === starts) await delay(20);
    work.kill('SIGTERM');
    await work.says(/daemon\.stopping/);
    work.kill('SIGTERM');
    expect(await work.ended).toEqual({ code: 4, signal: null });
    // Its Redis was left behind, as by a crash, and is adopted by the next command, which stops it.
    await trawl(folder, 'status').ended;
    expect(await accepts(socketOf(folder))).toBe(false);
  });

  it('a file that cannot be used starts no Redis', async () => {
    const { folder } = await open();
    folder.write('bad.ndjson', '{}\n');
    const ends = await Promise.all(
      ['run', 'submit', 'plan'].map((command) => trawl(folder, command, 'bad.ndjson').ended),
    );
    expect(ends.map(({ code }) => code)).toEqual([2, 2, 2]);
    expect(existsSync(join(folder.path, '.trawl'))).toBe(false);
  });

  it('says that Redis cannot be reached, and ends with 4', async () => {
    const { folder } = await open();
    folder.jobs('jobs.ndjson', [{ id: 'a', input: {} }]);
    folder.write(
      'away.yaml',
      `redis: { url: "redis://127.0.0.1:9" }\nservers: { apify: { token: x, tools: [${yellowPages}] } }\n`,
    );
    await Promise.all(
      [['status'], ['run', 'jobs.ndjson'], ['work']].map(async (args) => {
        const program = trawl(folder, ...args, '--config', 'away.yaml');
        expect(await program.ended).toEqual({ code: 4, signal: null });
        expect(program.lines.join('\n')).toMatch(/^trawl: Redis at redis:\/\/127\.0\.0\.1:9: /m);
      }),
    );
  });

  it('ends quietly when its reader goes away', async () => {
    const { folder } = await open();
    const help = trawl(folder, '--help');
    (help.output as NodeJS.ReadableStream & { destroy(): void }).destroy();
    expect(await help.ended).toEqual({ code: 0, signal: null });
    expect(help.lines).toEqual([]);
  });

  it('tells a Node that is too old in one sentence', async () => {
    const old = `Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '18.20.4' } })`;
    const program = new Program(
      build,
      root,
      ['--help'],
      ['--import', `data:text/javascript,${encodeURIComponent(old)}`],
    );
    expect(await program.ended).toEqual({ code: 2, signal: null });
    expect(program.lines).toEqual(['trawl: needs Node 20.19 or newer, and this is 18.20.4.']);
  });
});
