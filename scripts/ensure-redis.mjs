#!/usr/bin/env node
// Makes sure that this machine has a redis-server (or valkey-server) for `npm test`, `npm run demo` and the private Redis.
// Plain Node without dependencies, so that it runs before `npm ci`, and in syntax that a Node too old for Trawl reads.
// Exit codes: 0 there is one · 1 there is none · 2 usage or Node too old.
import { spawnSync } from 'node:child_process';
import { accessSync, constants, existsSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';

// Kept equal to package.json (engines) and src/redis/find-binary.ts by test/redis/ensure-redis.test.ts.
const leastNode = [20, 19];
const binaries = ['redis-server', 'valkey-server'];
const hint = `Install one, or set redis.url (REDIS_URL) to a server you have:
  Debian, Ubuntu:  sudo apt-get install -y --no-install-recommends redis-server
  macOS:           brew install redis
  Fedora, RHEL:    sudo dnf install -y redis || sudo dnf install -y valkey
  Alpine:          apk add redis
  Docker:          docker run -d -p 127.0.0.1:6379:6379 redis:7 --appendonly yes --maxmemory-policy noeviction
`;

process.exitCode = main();

function main() {
  const tooOld = nodeTooOld(process.versions.node);
  if (tooOld) return complain(tooOld, 2);
  if (process.argv.length > 2) return complain('Usage: node scripts/ensure-redis.mjs (no arguments)', 2);
  if (binaries.some(onPath)) return 0;
  if (canInstall()) {
    process.stderr.write('No redis-server on the PATH; installing it with apt-get.\n');
    if (install() && binaries.some(onPath)) return 0;
    process.stderr.write('apt-get did not bring a redis-server.\n');
  }
  return complain(`No redis-server or valkey-server on the PATH.\n${hint.trimEnd()}`, 1);
}

function complain(message, code) {
  process.stderr.write(`${message}\n`);
  return code;
}

function nodeTooOld(version) {
  const [major, minor] = version.split('.').map(Number);
  const enough = major > leastNode[0] || (major === leastNode[0] && minor >= leastNode[1]);
  if (enough) return null;
  return `Trawl needs Node ${leastNode.join('.')} or newer, and this is ${version}: get one from https://nodejs.org/`;
}

function onPath(name) {
  return (process.env.PATH || '').split(delimiter).some((folder) => {
    try {
      accessSync(join(folder, name), constants.X_OK);
      return folder !== '' && statSync(join(folder, name)).isFile();
    } catch {
      return false;
    }
  });
}

function canInstall() {
  return existsSync('/etc/debian_version') && process.getuid && process.getuid() === 0 && onPath('apt-get');
}

/** Installs the package without letting it start a service of its own: Trawl starts what it needs. */
function install() {
  const policy = '/usr/sbin/policy-rc.d';
  const ours = !existsSync(policy);
  // Ctrl-C ends apt-get; this process stays to take the policy away again.
  const stay = () => {};
  process.on('SIGINT', stay);
  process.on('SIGTERM', stay);
  try {
    if (ours) writeFileSync(policy, '#!/bin/sh\nexit 101\n', { mode: 0o755 });
    const lock = ['-o', 'DPkg::Lock::Timeout=120'];
    apt(lock.concat('update'));
    return apt(lock.concat('install', '-y', '--no-install-recommends', 'redis-server'));
  } finally {
    if (ours) rmSync(policy, { force: true });
    process.off('SIGINT', stay);
    process.off('SIGTERM', stay);
  }
}

function apt(args) {
  const env = Object.assign({}, process.env, { DEBIAN_FRONTEND: 'noninteractive' });
  // Everything to stderr: stdout belongs to whoever called.
  return spawnSync('apt-get', args, { env, stdio: ['ignore', 2, 2] }).status === 0;
}
