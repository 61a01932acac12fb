import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';

const script = fileURLToPath(new URL('../../scripts/ensure-prometheus.mjs', import.meta.url));
const run = (args: string[], path = process.env.PATH) =>
  spawnSync(process.execPath, [script, ...args], { encoding: 'utf8', env: { PATH: path } });

it('is content with what is there', () => {
  expect(run([])).toMatchObject({ status: 0, stdout: '', stderr: '' });
});

it('names what is missing and how to get it, where it may not install', () => {
  // Without apt-get on the PATH it cannot.
  const { status, stderr } = run([], '/nowhere');
  expect(status).toBe(1);
  expect(stderr).toContain('Not on the PATH: prometheus, promtool, amtool, alertmanager.');
  expect(stderr).toContain('brew install prometheus alertmanager');
});

it('takes no arguments', () => {
  expect(run(['--force']).status).toBe(2);
});
