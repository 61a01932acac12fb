import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/**
 * As docker-compose.yml has it: process 1 of its own, read-only root, no capabilities, no new privileges; a volume on
 * /data/results, memory on /tmp. The network is this machine's.
 */
const script = `set -eu
root=$1 volume=$2; shift 2
mount --bind "$root" "$root"
mount -t proc proc "$root/proc"
mount --rbind /dev "$root/dev"
mount --bind "$volume" "$root/data/results"
mount -t tmpfs -o mode=1777 tmpfs "$root/tmp"
mount -o remount,bind,ro "$root"
exec chroot "$root" setpriv --no-new-privs --bounding-set=-all --inh-caps=-all --clear-groups "$@"`;

/** The image's root filesystem as a container runtime would run it, by the image's own configuration. */
export class Inside {
  children = [];

  constructor({ path, config }, volume) {
    this.path = path;
    this.config = config;
    this.volume = volume;
  }

  /** Puts a file where Compose would mount one. */
  put(place, text) {
    const file = join(this.path, place);
    mkdirSync(join(file, '..'), { recursive: true });
    writeFileSync(file, text);
    chmodSync(file, 0o444);
  }

  argsFor(command, env) {
    const [uid, gid] = this.config.User.split(':');
    const variables = [...this.config.Env, ...Object.entries(env).map((pair) => pair.join('='))];
    const enter = ['sh', '-c', 'cd "$0" && exec "$@"', this.config.WorkingDir || '/', ...command];
    const user = [`--reuid=${uid}`, `--regid=${gid}`, 'env', '-i', ...variables, ...enter];
    return ['--mount', '--pid', '--fork', 'sh', '-c', script, 'sh', this.path, this.volume, ...user];
  }

  /** A command as `docker run IMAGE ARGS`, to its end. */
  trawl(args, env = {}, input = '') {
    return this.exec([...this.config.Entrypoint, ...args], env, input);
  }

  exec(command, env = {}, input = '') {
    const { status, stdout, stderr } = spawnSync('unshare', this.argsFor(command, env), {
      encoding: 'utf8',
      input,
      timeout: 120_000,
    });
    return { status, stdout: stdout.trim(), stderr: stderr.trim() };
  }

  start(args, env = {}) {
    const command = [...this.config.Entrypoint, ...(args ?? this.config.Cmd)];
    const child = spawn('unshare', this.argsFor(command, env), { stdio: ['ignore', 'ignore', 'pipe'] });
    let log = '';
    child.stderr.on('data', (bytes) => {
      log = (log + bytes).slice(-20_000);
    });
    const ended = once(child, 'exit').then(([code]) => code);
    this.children.push(child);
    return { child, ended, log: () => log, first: () => onlyChild(child.pid) };
  }

  /**
   * What is still there goes without asking. Process 1 takes the rest of the container with it; `--kill-child` would not do,
   * since a change of user takes that order back.
   */
  close() {
    for (const child of this.children) {
      if (child.exitCode !== null || child.signalCode !== null) continue;
      const first = onlyChild(child.pid);
      // 0 would be our own process group.
      if (first > 0) process.kill(first, 'SIGKILL');
      else child.kill('SIGKILL');
    }
  }
}

/** Of unshare: process 1 of the container, by its number out here. */
function onlyChild(pid) {
  return Number(readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ')[0]);
}

/** What a process and its children run as: [name, uid] each. */
export function identities(pid) {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8')
    .trim()
    .split(' ')
    .filter(Boolean);
  const own = [/^Name:\s+(.+)$/m.exec(status)?.[1], Number(/^Uid:\s+(\d+)/m.exec(status)?.[1])];
  return [own, ...children.flatMap((child) => identities(Number(child)))];
}
