import type { Origin, Path } from './problem.js';

/** A mapping of the file as read; without a prototype, so that no key means anything by itself. */
export type TreeMap = { [key: string]: unknown };

/** The file as plain values, with the origin of each, and the unexpanded text where variables were put in. */
export interface Tree {
  root: unknown;
  readonly origins: Map<string, Origin>;
  readonly written: Map<string, string>;
}

/** The key under which a path is kept in `origins` and `written`; NUL cannot occur in a part. */
export function pathKey(path: Path): string {
  return path.join('\0');
}

/** Where the value at `path`, or the nearest mapping or list around it, came from. */
export function originOf(tree: Tree, path: Path): Origin | null {
  for (let length = path.length; length >= 0; length -= 1) {
    const origin = tree.origins.get(pathKey(path.slice(0, length)));
    if (origin !== undefined) return origin;
  }
  return null;
}

export function isMap(value: unknown): value is TreeMap {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

export function valueAt(root: unknown, path: Path): unknown {
  let value = root;
  for (const part of path) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, part)) return undefined;
    value = (value as Record<string | number, unknown>)[part];
  }
  return value;
}

/** Sets a value, making the mappings on the way; an existing scalar on the way is replaced. */
export function setAt(tree: Tree, path: readonly string[], value: unknown, origin: Origin): void {
  if (!isMap(tree.root)) tree.root = Object.create(null);
  let map = tree.root as TreeMap;
  for (const part of path.slice(0, -1)) {
    if (!isMap(map[part])) map[part] = Object.create(null);
    map = map[part] as TreeMap;
  }
  const last = path.at(-1);
  if (last === undefined) return;
  map[last] = value;
  tree.origins.set(pathKey(path), origin);
  tree.written.delete(pathKey(path));
}
