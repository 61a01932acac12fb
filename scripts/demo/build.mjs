import { spawnSync } from 'node:child_process';
import { cpSync, readdirSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const root = fileURLToPath(new URL('../..', import.meta.url));
const sources = ['src', 'workers', 'test/sim', 'tsconfig.json', 'tsconfig.build.json', 'package-lock.json'];
const quick = ['--noCheck', '--declaration', 'false'];
const stamp = join(root, 'dist/.built');

/** Whether dist/ is there and no source is newer than it. */
export function isBuilt() {
  const built = Math.max(modified(stamp), modified(join(root, 'dist/src/cli/bin.js')));
  return (
    modified(join(root, 'dist/test/sim/index.js')) > 0 &&
    sources.every((path) => newest(join(root, path)) <= built)
  );
}

/** Without type check and declarations, which `npm run build` makes: somebody is waiting. False when it failed. */
export function build() {
  const tsc = join(root, 'node_modules/typescript/bin/tsc');
  const { status } = spawnSync(process.execPath, [tsc, '-p', join(root, 'tsconfig.build.json'), ...quick], {
    stdio: 'inherit',
  });
  if (status !== 0) return false;
  copyPage();
  writeFileSync(stamp, '');
  return true;
}

function copyPage() {
  cpSync(join(root, 'src/http/page'), join(root, 'dist/src/http/page'), { recursive: true });
}

function modified(path) {
  return statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0;
}

function newest(path) {
  const stat = statSync(path);
  if (!stat.isDirectory()) return stat.mtimeMs;
  return readdirSync(path, { recursive: true }).reduce(
    (latest, name) => Math.max(latest, modified(join(path, name))),
    0,
  );
}
