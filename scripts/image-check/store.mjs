import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const root = fileURLToPath(new URL('../..', import.meta.url));

export function say(text) {
  process.stderr.write(`${text}\n`);
}

/** Runs a program, its output to stderr, or returned with `quiet`. @throws Error when it does not end with 0 */
export function run(command, args, { quiet = false, ...options } = {}) {
  const stdio = quiet ? ['ignore', 'pipe', 'pipe'] : ['ignore', 2, 2];
  const { status, error, stdout, stderr } = spawnSync(command, args, { stdio, encoding: 'utf8', ...options });
  if (status === 0) return (stdout ?? '').trim();
  const why = error?.message ?? `ended with ${status}: ${(stderr ?? '').trim().split('\n').at(-1)}`;
  throw new Error(`${[command, ...args].join(' ').slice(0, 80)} ${why}`);
}

/** Images and containers of buildah in a folder of their own, so that nothing of the machine's is touched. */
export class Store {
  containers = [];
  driver = null;

  constructor(dir) {
    this.dir = dir;
  }

  get args() {
    this.driver ??= this.works('overlay') ? 'overlay' : 'vfs';
    return this.argsFor(this.driver);
  }

  argsFor(driver) {
    const [storage, runroot] = [join(this.dir, driver), join(this.dir, `${driver}-run`)];
    return ['--root', storage, '--runroot', runroot, '--storage-driver', driver];
  }

  /** Overlay copies nothing, but not every file system can carry it; vfs works everywhere. */
  works(driver) {
    const said = (...args) => spawnSync('buildah', [...this.argsFor(driver), ...args], { encoding: 'utf8' });
    const made = said('from', 'scratch');
    if (made.status !== 0) return false;
    const name = made.stdout.trim();
    const mounted = said('mount', name).status === 0;
    said('rm', name);
    return mounted;
  }

  buildah(...args) {
    return run('buildah', [...this.args, ...args], { env: this.env });
  }

  ask(...args) {
    return run('buildah', [...this.args, ...args], { quiet: true, env: this.env });
  }

  /** No container runtime, and so no cgroups or user namespaces, are needed to build. */
  get env() {
    return { ...process.env, BUILDAH_ISOLATION: 'chroot' };
  }

  inspect(image) {
    return JSON.parse(this.ask('inspect', '--type', 'image', image));
  }

  /** Bytes of all layers. */
  size(image) {
    const [found] = JSON.parse(this.ask('images', '--json', image));
    return parseSize(found.size);
  }

  /** A working container's root filesystem; it goes when the store is closed. */
  container(image) {
    const name = this.ask('from', image);
    this.containers.push(name);
    return { name, path: this.ask('mount', name), config: this.inspect(image).Docker.config };
  }

  close() {
    for (const name of this.containers) {
      spawnSync('buildah', [...this.args, 'umount', name]);
      spawnSync('buildah', [...this.args, 'rm', name]);
    }
    this.containers = [];
  }
}

/** `347 MB` in bytes. */
function parseSize(text) {
  const [, number, unit] = /^([\d.]+) ([KMG]?B)$/.exec(text) ?? [];
  const factor = { B: 1, KB: 1e3, MB: 1e6, GB: 1e9 }[unit];
  if (factor === undefined)
    throw new Error(`expected a size such as "347 MB" from buildah images, found "${text}"`);
  return Number(number) * factor;
}
