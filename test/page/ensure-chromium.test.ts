import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { binaries } from './browser.js';

const script = fileURLToPath(new URL('../../scripts/ensure-chromium.mjs', import.meta.url));
const run = (args: string[], path = process.env.PATH) =>
  spawnSync(process.execPath, [script, ...args], { encoding: 'utf8', env: { PATH: path } });

it('is content with what is there, and looks for what the tests take', () => {
  expect(run([])).toMatchObject({ status: 0, stdout: '', stderr: '' });
  const names = binaries.map((name) => `'${name}'`).join(', ');
  expect(readFileSync(script, 'utf8')).toContain(`const binaries = [${names}];`);
});

it('says how to get one, where it may not install', () => {
  const { status, stderr } = run([], '/nowhere');
  expect(status).toBe(1);
  expect(stderr).toContain('No Chromium on the PATH, and the tests of the page need one.');
  expect(stderr).toContain('apt-get install -y --no-install-recommends chromium');
});

it('takes no arguments', () => {
  expect(run(['--force']).status).toBe(2);
});
