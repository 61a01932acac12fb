#!/usr/bin/env node
// `npm run test:real [vitest arguments]`: installs the real MCP servers (in a package of their own) when they are not there, then
// runs the tests against them. Exits with what vitest exits with, or 1 when the installation fails.
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const here = dirname(fileURLToPath(import.meta.url));
const root = join(here, '../..');
const servers = join(here, 'servers');
const marker = join(servers, 'node_modules', '.installed');
const vitest = join(root, 'node_modules/vitest/vitest.mjs');

process.exitCode = prepared() || install() || test();

function prepared() {
  if (existsSync(vitest)) return 0;
  process.stderr.write('Run `npm ci` first: vitest is not installed.\n');
  return 1;
}

function install() {
  const digest = createHash('sha256')
    .update(readFileSync(join(servers, 'package-lock.json')))
    .digest('hex');
  if (readOrNull(marker) === digest) return 0;
  process.stderr.write('Installing the real MCP servers (157 MB, once).\n');
  // No scripts: the servers need none. Their engines ask for a newer Node than they use.
  const args = [
    'ci',
    '--ignore-scripts',
    '--no-audit',
    '--no-fund',
    '--loglevel=error',
    '--engine-strict=false',
  ];
  const { status } = spawnSync('npm', args, { cwd: servers, stdio: ['ignore', 2, 2] });
  if (status !== 0) return 1;
  writeFileSync(marker, digest);
  return 0;
}

function test() {
  const { dependencies } = JSON.parse(readFileSync(join(servers, 'package.json'), 'utf8'));
  const names = Object.entries(dependencies).map(([name, version]) => `${name} ${version}`);
  process.stderr.write(`Real servers: ${names.join(', ')}\n`);
  const args = [vitest, 'run', '--config', join(here, 'vitest.config.ts'), ...process.argv.slice(2)];
  return spawnSync(process.execPath, args, { cwd: root, stdio: 'inherit' }).status ?? 1;
}

function readOrNull(file) {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return null;
  }
}
