#!/usr/bin/env node
// Makes sure that this machine has Prometheus and Alertmanager with their tools, which the tests of the alert rules run.
// Plain Node without dependencies. Exit codes: 0 they are there · 1 they are not · 2 usage.
import { spawnSync } from 'node:child_process';
import { accessSync, constants, existsSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';

/** Debian calls Alertmanager's program by its package's name. */
const needed = [['prometheus'], ['promtool'], ['amtool'], ['alertmanager', 'prometheus-alertmanager']];
const hint = `Install Prometheus and Alertmanager:
  Debian, Ubuntu:  sudo apt-get install -y --no-install-recommends prometheus prometheus-alertmanager
  macOS:           brew install prometheus alertmanager
  other:           https://prometheus.io/download/
`;

process.exitCode = main();

function main() {
  if (process.argv.length > 2) {
    process.stderr.write('Usage: node scripts/ensure-prometheus.mjs (no arguments)\n');
    return 2;
  }
  if (missing().length === 0) return 0;
  if (existsSync('/etc/debian_version') && process.getuid?.() === 0 && onPath('apt-get')) {
    process.stderr.write(`Not on the PATH: ${missing().join(', ')}; installing with apt-get.\n`);
    install();
    if (missing().length === 0) return 0;
  }
  process.stderr.write(`Not on the PATH: ${missing().join(', ')}.\n${hint}`);
  return 1;
}

function missing() {
  return needed.filter((names) => !names.some(onPath)).map(([name]) => name);
}

function onPath(name) {
  return (process.env.PATH ?? '').split(delimiter).some((folder) => {
    try {
      accessSync(join(folder, name), constants.X_OK);
      return folder !== '' && statSync(join(folder, name)).isFile();
    } catch {
      return false;
    }
  });
}

/** Without letting the packages start services of their own. */
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
    apt([...lock, 'update']);
    apt([...lock, 'install', '-y', '--no-install-recommends', 'prometheus', 'prometheus-alertmanager']);
  } finally {
    if (ours) rmSync(policy, { force: true });
    process.off('SIGINT', stay);
    process.off('SIGTERM', stay);
  }
}

function apt(args) {
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' };
  // Everything to stderr: stdout belongs to whoever called.
  return spawnSync('apt-get', args, { env, stdio: ['ignore', 2, 2] }).status === 0;
}
