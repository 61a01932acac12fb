import { spawn, spawnSync } from 'node:child_process';
import { chownSync, existsSync, mkdirSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Inside, identities } from './inside.mjs';
import { root, run, say } from './store.mjs';

/** Jobs of the demo that end within seconds, and how many items each brings at least. */
const jobs = readFileSync(join(root, 'scripts/demo/businesses.ndjson'), 'utf8')
  .trim()
  .split('\n')
  .slice(0, 3);

/** Runs the image against a real Redis and its own simulator, and stops it. */
export async function checkRunning(store, container, table) {
  say('Running the image.');
  run(process.execPath, [join(root, 'scripts/ensure-redis.mjs')]);
  const volume = join(store.dir, 'results');
  const { uid, gid, mode } = statSync(join(container.path, 'data/results'));
  // As Docker does for a new volume: the owner and mode of the folder below it.
  mkdirSync(volume, { mode });
  chownSync(volume, uid, gid);
  const inside = new Inside(container, volume);
  const redisPort = await freePort();
  const redis = startRedis(redisPort, store.dir);
  try {
    await checkCommands(inside, table);
    const simPort = await freePort();
    const sim = inside.start(['sim', '--port', String(simPort), '--speed', '60']);
    await until('the simulator', () => answers(simPort, '/sim/stats'), sim);
    const demo = readFileSync(join(root, 'deploy/compose/demo.yaml'), 'utf8');
    inside.put('app/trawl.yaml', demo.replace('http://sim:8931', `http://127.0.0.1:${simPort}`));
    inside.put('run/secrets/apify-token', 'any\n');
    inside.put('run/secrets/http-token', 'a-token-of-the-page\n');
    const port = await freePort();
    const env = {
      TRAWL_HTTP__PORT: port,
      TRAWL_REDIS__URL: `redis://127.0.0.1:${redisPort}`,
      TRAWL_RESULTS__DIR: '/data/results',
    };
    const doctor = inside.trawl(['doctor'], env);
    table.add('trawl doctor', doctor.status === 0, lastLine(doctor.stdout || doctor.stderr));
    await checkWorker(inside, { port, env, volume, uid }, table);
  } finally {
    inside.close();
    redis.kill();
  }
}

async function checkCommands(inside, table) {
  const version = inside.trawl(['--version']);
  const { version: expected } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  table.add('trawl --version', version.stdout === expected, version.stdout || lastLine(version.stderr));
  const write = inside.exec([
    'sh',
    '-c',
    'touch /app/x /etc/x /usr/x 2>&1; touch /data/results/x && rm /data/results/x',
  ]);
  const refused = write.stdout.split('\n').filter((line) => /Read-only|denied/.test(line)).length;
  table.add(
    'writes results alone',
    write.status === 0 && refused === 3,
    `${refused} of 3 other places refuse`,
  );
}

async function checkWorker(inside, { port, env, volume, uid }, table) {
  const worker = inside.start(null, env);
  await until('the worker', () => answers(port, '/readyz'), worker);
  table.add('trawl work', true, 'ready');
  const running = identities(worker.first());
  const asRoot = running.filter(([, id]) => id === 0);
  table.add('runs as', asRoot.length === 0, running.map(([name, id]) => `${name} ${id}`).join(', '));

  const [, ...probe] = inside.config.Healthcheck.Test;
  const healthy = inside.exec(probe, env).status;
  const sick = inside.exec(probe, { ...env, TRAWL_HTTP__PORT: await freePort() }).status;
  table.add('health check', healthy === 0 && sick === 1, `${healthy} with a worker, ${sick} without`);

  const submitted = inside.trawl(['submit', '-', '--batch', 'check'], env, `${jobs.join('\n')}\n`);
  table.add('trawl submit', submitted.status === 0, lastLine(submitted.stdout || submitted.stderr));
  const batch = join(volume, 'batch=check');
  const settled = () =>
    existsSync(batch) &&
    readdirSync(batch).filter((scrape) => existsSync(join(batch, scrape, 'outcome.json'))).length ===
      jobs.length;
  await until('the outcomes', settled, worker);
  const outcomes = readdirSync(batch).map((scrape) =>
    JSON.parse(readFileSync(join(batch, scrape, 'outcome.json'), 'utf8')),
  );
  const items = outcomes.reduce((sum, { items }) => sum + items, 0);
  const good = outcomes.every(({ outcome }) => outcome === 'succeeded') && statSync(batch).uid === uid;
  table.add(
    'scrapes',
    good && items > 0,
    `${outcomes.map(({ outcome }) => outcome).join(', ')}; ${items} items`,
  );

  const startedAt = Date.now();
  process.kill(worker.first(), 'SIGTERM');
  const code = await Promise.race([worker.ended, sleep(60_000, 'still runs', { ref: false })]);
  const stopped = /"event":"daemon.stopped"/.test(worker.log());
  table.add(
    'SIGTERM',
    code === 0 && stopped,
    `ended with ${code} after ${((Date.now() - startedAt) / 1000).toFixed(1)} s`,
  );
}

function startRedis(port, dir) {
  const folder = join(dir, 'redis');
  mkdirSync(folder);
  const binary = ['redis-server', 'valkey-server'].find(
    (name) => spawnSync(name, ['--version']).status === 0,
  );
  const settings = {
    port,
    bind: '127.0.0.1',
    dir: folder,
    appendonly: 'yes',
    'maxmemory-policy': 'noeviction',
  };
  const args = Object.entries(settings).flatMap(([name, value]) => [`--${name}`, String(value)]);
  return spawn(binary, args, { stdio: 'ignore' });
}

async function freePort() {
  const server = createServer().listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  const { port } = server.address();
  await new Promise((resolve) => server.close(resolve));
  return port;
}

async function answers(port, path) {
  return fetch(`http://127.0.0.1:${port}${path}`).then(
    ({ ok }) => ok,
    () => false,
  );
}

/** @throws Error with the end of the log when it does not come about within two minutes, or the process ends before */
async function until(what, holds, { ended, log }) {
  const deadline = Date.now() + 120_000;
  let over = false;
  void ended.then(() => {
    over = true;
  });
  while (!(await holds())) {
    if (over || Date.now() > deadline) {
      say(log());
      throw new Error(
        `${what} did not come: ${over ? 'its process ended' : 'not within 2 minutes'}; its log is above`,
      );
    }
    await sleep(100);
  }
}

function lastLine(text) {
  return text.trim().split('\n').at(-1) ?? '';
}
