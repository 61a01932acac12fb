import { mkdirSync, statSync } from 'node:fs';
import { dirname } from 'node:path';

/**
 * Makes a folder and those above it, and returns the first one that it had to make, or null. In place of Node's own
 * `recursive: true`, which never returns where making a folder fails with ENOENT although its parent is there (/proc).
 * @throws what mkdir throws; a file in the way is EEXIST or ENOTDIR
 */
export function makeFolders(dir: string, mode: number): string | null {
  try {
    mkdirSync(dir, { mode });
    return dir;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'EEXIST' && statSync(dir).isDirectory()) return null;
    if (code !== 'ENOENT' || dirname(dir) === dir) throw error;
  }
  const first = makeFolders(dirname(dir), mode);
  try {
    mkdirSync(dir, { mode });
  } catch (error) {
    // Another process may have been faster.
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  }
  return first ?? dir;
}
