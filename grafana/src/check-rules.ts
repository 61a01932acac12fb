import { spawnSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

// `npm run test:rules`: what Prometheus's and Alertmanager's own tools say of what is shipped. Takes about a minute of CPU.
const folder = fileURLToPath(new URL('../prometheus', import.meta.url));
const files = (name: string) => readdirSync(`${folder}/${name}`).map((file) => `${folder}/${name}/${file}`);
const checks: readonly [string, ...string[]][] = [
  ['promtool', 'check', 'rules', '--lint-fatal', ...files('rules')],
  ['amtool', 'check-config', `${folder}/alertmanager.yml`],
  // One after another: they need a core each, and little memory.
  ...files('tests').map((file): [string, ...string[]] => ['promtool', 'test', 'rules', file]),
];
for (const [tool, ...args] of checks) {
  // The tests make many small objects; collecting them less often takes a third off.
  const { status } = spawnSync(tool, args, { stdio: 'inherit', env: { ...process.env, GOGC: '400' } });
  if (status !== 0) process.exitCode = 1;
}
