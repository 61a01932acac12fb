import { cleanText } from '../scrape/clean-text.js';

export type Path = readonly (string | number)[];

/** Where a value came from: a line of the file, or the name of an override. */
export type Origin = { readonly line: number } | { readonly override: string };

/** One thing that is wrong with a configuration. Never holds a secret. */
export interface ConfigProblem {
  readonly path: Path;
  readonly origin: Origin | null;
  /** `expected …, found …`. */
  readonly message: string;
  readonly code: 'config_invalid' | 'config_env_missing' | 'config_secret_unreadable';
}

/** `servers.apify.tools[0].deadline` */
export function pathText(path: Path): string {
  let text = '';
  for (const part of path) {
    if (typeof part === 'number') text += `[${part}]`;
    else text += text === '' ? cleanText(part, 60) : `.${cleanText(part, 60)}`;
  }
  return text;
}

/** `trawl.yaml:12: servers.apify.limits.runs: expected …, found …`; an override's name stands in place of the line. */
export function problemText(file: string, problem: ConfigProblem): string {
  const where =
    problem.origin === null
      ? file
      : 'line' in problem.origin
        ? `${file}:${problem.origin.line}`
        : problem.origin.override;
  const path = pathText(problem.path);
  return path === '' ? `${where}: ${problem.message}` : `${where}: ${path}: ${problem.message}`;
}

/** Names ending in these hold secrets: their values are never quoted. A url may carry credentials. */
export function isSecretKey(key: string | number | undefined): boolean {
  return typeof key === 'string' && /^(token|password|secret|url|authorization|headers)$/i.test(key);
}
