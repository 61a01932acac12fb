import { spawnSync } from 'node:child_process';
import {
  cpSync,
  existsSync,
  mkdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { run, say } from './store.mjs';

/** A reason, to stand after "no root filesystem can be made here, ". */
export class CannotBuild extends Error {}

const packages = ['buildah', 'mmdebstrap'];
/** What the Node of nodejs.org and of NodeSource is linked to. */
const libraries = ['ca-certificates', 'libstdc++6', 'libatomic1'];
const baseImage = 'localhost/node-base';

/**
 * Makes an image with Debian, Node and npm, and returns its name.
 * @param tar a root filesystem made before; absent: made now from Debian's packages, which takes about a minute
 * @throws CannotBuild when this machine cannot
 */
export function prepare(store, tar) {
  if (process.platform !== 'linux') throw new CannotBuild('since this is not Linux');
  if (process.getuid() !== 0) throw new CannotBuild('since that needs root');
  if (spawnSync('unshare', ['--mount', '--pid', '--fork', 'true']).status !== 0) {
    throw new CannotBuild('since this machine allows no namespaces');
  }
  install();
  const made = tar ?? debian(join(store.dir, 'debian.tar'));
  const name = store.ask('from', 'scratch');
  const path = store.ask('mount', name);
  run('tar', ['-C', path, '-xf', made]);
  if (tar === undefined) rmSync(made);
  addNode(path);
  store.ask('umount', name);
  store.ask('commit', '--format', 'docker', '--disable-compression', '--rm', name, baseImage);
  return baseImage;
}

function install() {
  if (packages.every((name) => spawnSync(name, ['--version']).status === 0)) return;
  if (!existsSync('/etc/debian_version')) {
    throw new CannotBuild(`since ${packages.join(' and ')} are missing and this is not Debian`);
  }
  say(`Installing ${packages.join(' and ')} with apt-get.`);
  const apt = (...args) =>
    spawnSync('apt-get', ['-o', 'DPkg::Lock::Timeout=120', ...args], {
      env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' },
      stdio: ['ignore', 2, 2],
    }).status === 0;
  if (!apt('update') || !apt('install', '-y', '--no-install-recommends', ...packages)) {
    throw new CannotBuild(`since apt-get did not bring ${packages.join(' and ')}`);
  }
}

function debian(tar) {
  say('Making a Debian root filesystem with mmdebstrap.');
  // Manuals and translations are not in the slim images either; fsync would be half of the time.
  const without = ['/usr/share/doc/*', '/usr/share/man/*', '/usr/share/locale/*'];
  const dpkg = ['force-unsafe-io', ...without.map((path) => `path-exclude=${path}`)];
  const args = [
    '--variant=minbase',
    `--include=${libraries.join(',')}`,
    ...dpkg.map((each) => `--dpkgopt=${each}`),
  ];
  const { status } = spawnSync('mmdebstrap', [...args, 'bookworm', tar], { stdio: ['ignore', 2, 2] });
  if (status !== 0) throw new CannotBuild('since mmdebstrap could not make one; what it said is above');
  return tar;
}

/** Node and npm of this machine, where the official image has them, and its user. */
function addNode(path) {
  const npm = dirname(dirname(realpathSync(run('sh', ['-c', 'command -v npm'], { quiet: true }))));
  const modules = join(path, 'usr/local/lib/node_modules');
  mkdirSync(modules, { recursive: true });
  cpSync(process.execPath, join(path, 'usr/local/bin/node'));
  cpSync(npm, join(modules, 'npm'), { recursive: true });
  symlinkSync('../lib/node_modules/npm/bin/npm-cli.js', join(path, 'usr/local/bin/npm'));
  // npm inside asks the same registry, and believes the same authorities, as npm here.
  const settings = ['registry', 'cafile'].map((key) => [
    key,
    run('npm', ['config', 'get', key], { quiet: true }),
  ]);
  const known = settings.filter(
    ([key, value]) => key === 'registry' || (value !== 'null' && existsSync(value)),
  );
  mkdirSync(join(path, 'usr/local/etc'), { recursive: true });
  const place = '/etc/ssl/certs/ca-certificates.crt';
  for (const [key, value] of known)
    if (key === 'cafile') writeFileSync(join(path, place), readFileSync(value));
  const lines = known.map(([key, value]) => `${key}=${key === 'cafile' ? place : value}\n`);
  writeFileSync(join(path, 'usr/local/etc/npmrc'), lines.join(''));
  run('chroot', [path, 'useradd', '--uid', '1000', '--user-group', '--create-home', 'node'], { quiet: true });
}
