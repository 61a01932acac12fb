#!/usr/bin/env node
// Makes sure that this machine has Chromium, in which the tests of the page run.
// Plain Node without dependencies. Exit codes: 0 it is there · 1 it is not · 2 usage.
import { spawnSync } from 'node:child_process';
import { accessSync, constants, existsSync, statSync } from 'node:fs';
import { delimiter, join } from 'node:path';

// Kept equal to test/page/browser.ts by test/page/ensure-chromium.test.ts.
const binaries = ['chromium', 'chromium-browser', 'google-chrome-stable', 'google-chrome'];
const hint = `Install one:
  Debian:          sudo apt-get install -y --no-install-recommends chromium
  Fedora:          sudo dnf install -y chromium
  macOS, other:    put a "chromium" or "google-chrome" on the PATH
`;

process.exitCode = main();

function main() {
  if (process.argv.length > 2) {
    process.stderr.write('Usage: node scripts/ensure-chromium.mjs (no arguments)\n');
    return 2;
  }
  if (binaries.some(onPath)) return 0;
  if (existsSync('/etc/debian_version') && process.getuid?.() === 0 && onPath('apt-get')) {
    process.stderr.write('No Chromium on the PATH; installing it with apt-get.\n');
    const lock = ['-o', 'DPkg::Lock::Timeout=120'];
    apt([...lock, 'update']);
    apt([...lock, 'install', '-y', '--no-install-recommends', 'chromium']);
    if (binaries.some(onPath)) return 0;
  }
  process.stderr.write(`No Chromium on the PATH, and the tests of the page need one. ${hint}`);
  return 1;
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

function apt(args) {
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' };
  // Everything to stderr: stdout belongs to whoever called.
  return spawnSync('apt-get', args, { env, stdio: ['ignore', 2, 2] }).status === 0;
}
