import { z } from 'zod';
import { cleanText } from '../scrape/clean-text.js';
import { nearest } from '../scrape/nearest.js';
import type { ConfigProblem, Origin } from './problem.js';
import { configSchema, mappingSchema } from './schema.js';
import { isMap, setAt, type Tree, valueAt } from './tree.js';

/** Environment variables that begin so are overrides, and unknown ones among them are errors. */
export const overridePrefix = 'TRAWL_';

export interface ConfigOptions {
  /** As given by `--config`; relative to `cwd`. Absent: `trawl.yaml` in `cwd`. */
  readonly file?: string | undefined;
  /** The configuration itself in place of a file, for what is built in. */
  readonly text?: string | undefined;
  readonly env: NodeJS.ProcessEnv;
  readonly cwd: string;
  /** From command-line options, by path: `{ 'results.dir': './out' }`. They win over the environment. */
  readonly overrides?: Readonly<Record<string, string | number | boolean>> | undefined;
}

/**
 * Applies overrides to what was read (design A3): `TRAWL_SERVERS__APIFY__LIMITS__RUNS` is the path joined by `__`,
 * upper or lower case; `-` in names and the humps of camelCase may be written as `_` or left out. An empty variable
 * counts as not given. A list takes its elements with commas.
 */
export function applyOverrides(tree: Tree, options: ConfigOptions): ConfigProblem[] {
  const problems: ConfigProblem[] = [];
  const paths = overridablePaths(tree);
  const byName = new Map<string, string[][]>();
  for (const path of paths) {
    const key = nameKey(path);
    byName.set(key, [...(byName.get(key) ?? []), path]);
  }
  const apply = (said: string, parts: readonly string[], value: unknown, origin: Origin, show: Shown) => {
    const matches = byName.get(nameKey(parts)) ?? [];
    const path = matches[0];
    if (path === undefined || matches.length > 1) {
      const message =
        path === undefined
          ? `unknown override; the nearest known one is ${nearest(said, paths.map(show))}`
          : `expected the name of one key, found that of ${matches.map((m) => m.join('.')).join(' and ')}`;
      problems.push({ path: [], origin, message, code: 'config_invalid' });
      return;
    }
    dropTwin(tree, path);
    setAt(tree, path, value, origin);
  };
  for (const [name, value] of Object.entries(options.env)) {
    if (!name.startsWith(overridePrefix) || !value || isServiceLink(name, value)) continue;
    const parts = name.slice(overridePrefix.length).split('__');
    apply(name, parts, value, { override: cleanText(name, 120) }, envName);
  }
  for (const [name, value] of Object.entries(options.overrides ?? {})) {
    apply(name, name.split('.'), value, { override: `option ${cleanText(name, 120)}` }, (path) =>
      path.join('.'),
    );
  }
  return problems;
}

type Shown = (path: readonly string[]) => string;

function envName(path: readonly string[]): string {
  return overridePrefix + path.map((part) => part.toUpperCase().replaceAll('-', '_')).join('__');
}

function nameKey(path: readonly string[]): string {
  return path.map((part) => part.toLowerCase().replace(/[-_]/g, '')).join('__');
}

/** Every key that holds a value, with the servers that are configured. */
function overridablePaths(tree: Tree): string[][] {
  const paths: string[][] = [];
  const visit = (schema: unknown, path: string[]) => {
    const mapping = mappingSchema(schema);
    if (mapping === null) {
      paths.push(path);
    } else if (mapping instanceof z.ZodRecord) {
      const known = valueAt(tree.root, path);
      for (const name of isMap(known) ? Object.keys(known) : []) visit(mapping.valueType, [...path, name]);
    } else {
      for (const [key, inner] of Object.entries(mapping.shape)) visit(inner, [...path, key]);
    }
  };
  visit(configSchema, []);
  return paths;
}

/** A secret given by an override stands against the one in the file, in whichever of the two ways each is given. */
function dropTwin(tree: Tree, path: readonly string[]): void {
  const last = path.at(-1) ?? '';
  const twin = last.endsWith('File') ? last.slice(0, -'File'.length) : `${last}File`;
  const map = valueAt(tree.root, path.slice(0, -1));
  if (isMap(map) && (last.endsWith('File') || Object.hasOwn(map, twin))) delete map[twin];
}

/** Kubernetes sets such variables in every pod beside a service called `trawl…`; they are not meant for us. */
function isServiceLink(name: string, value: string): boolean {
  return (
    /_SERVICE_(HOST|PORT(_\w+)?)$/.test(name) ||
    (/_PORT(_\d+_\w+)?$/.test(name) && /^(tcp|udp|sctp):\/\//.test(value)) ||
    /_PORT_\d+_(TCP|UDP|SCTP)_(PROTO|PORT|ADDR)$/.test(name)
  );
}
