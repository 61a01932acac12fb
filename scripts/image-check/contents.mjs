import { existsSync, lstatSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { root } from './store.mjs';

/** Of dependencies and code: a compiler or a browser among them would not fit. */
const mostBytes = 60e6;

/** What lies in the image and what its configuration says, without running it. */
export function checkContents({ path, config }, table) {
  const inside = (...parts) => join(path, ...parts);
  const files = [...walk(inside('app'))];
  const bytes = (folder) =>
    files
      .filter((file) => file.startsWith(inside(folder)))
      .reduce((sum, file) => sum + lstatSync(file).size, 0);
  const size = (folder) => `${folder} ${(bytes(folder) / 1e6).toFixed(1)} MB`;
  table.add('our files', bytes('app') < mostBytes, [size('app/node_modules'), size('app/dist')].join(', '));

  const { User, Entrypoint, Cmd, StopSignal, Healthcheck } = config;
  table.add('user', /^[1-9]\d*:[1-9]\d*$/.test(User), User);
  table.add(
    'entrypoint',
    Entrypoint?.[0] === '/usr/bin/tini',
    [...(Entrypoint ?? []), ...(Cmd ?? [])].join(' '),
  );
  table.add('stop signal', StopSignal === 'SIGTERM', StopSignal);
  table.add(
    'health check',
    Healthcheck?.Test?.[0] === 'CMD',
    Healthcheck?.Test?.slice(0, 3).join(' ') ?? 'none',
  );

  const lock = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8'));
  const { devDependencies } = lock.packages[''];
  const direct = Object.keys(devDependencies).map((name) => `node_modules/${name}`);
  const dev = [
    ...new Set([...direct, ...Object.keys(lock.packages).filter((name) => lock.packages[name].dev)]),
  ];
  const left = dev.filter((name) => existsSync(inside('app', name)));
  table.add('no dev dependencies', left.length === 0, left.join(', ') || `none of ${dev.length}`);

  const tests = files.filter((file) => !file.includes('/node_modules/') && /\.test\.|\/wire\//.test(file));
  table.add('no tests', tests.length === 0, tests.join(', ') || 'none; dist/test/sim is the simulator');

  const caches = ['root/.npm', 'home/node/.npm', 'root/.cache', 'var/lib/apt/lists', 'tmp'];
  const full = caches.filter((each) => existsSync(inside(each)) && readdirSync(inside(each)).length > 0);
  table.add('no caches', full.length === 0, full.join(', ') || caches.join(', '));

  const loose = [inside('app'), ...files].filter((file) => {
    const { uid, mode } = lstatSync(file);
    return uid !== 0 || (!lstatSync(file).isSymbolicLink() && (mode & 0o002) !== 0);
  });
  table.add(
    'code is not its to change',
    loose.length === 0,
    loose.join(', ') || `${files.length} files of root's`,
  );

  const results = statSync(inside('data/results'));
  const [uid] = User.split(':').map(Number);
  const mode = (results.mode & 0o777).toString(8);
  table.add(
    'results folder',
    results.uid === uid && mode === '750',
    `/data/results of ${results.uid}, mode ${mode}`,
  );
}

function* walk(folder) {
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const file = join(folder, entry.name);
    if (entry.isDirectory()) yield* walk(file);
    else yield file;
  }
}
