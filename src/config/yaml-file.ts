import { closeSync, fstatSync, openSync, readSync } from 'node:fs';
import { isAlias, isScalar, isSeq, isMap as isYamlMap, LineCounter, type Node, parseDocument } from 'yaml';
import { TrawlError } from '../errors.js';
import { cleanText } from '../scrape/clean-text.js';
import { expand } from './expand.js';
import type { ConfigProblem, Path } from './problem.js';
import { pathKey, type Tree, type TreeMap } from './tree.js';

const maxFileBytes = 1024 * 1024;
const maxNodes = 50_000;
const maxYamlDepth = 32;

/**
 * Reads a configuration file: at most 1 MiB of UTF-8, a byte order mark allowed, pipes too.
 * @throws TrawlError `config_missing` when there is none, `config_invalid` when it cannot be read as text.
 */
export function readConfigText(file: string, label: string): string {
  let bytes: Buffer;
  try {
    bytes = readBounded(file, maxFileBytes);
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code;
    if (code === 'ENOENT' || code === 'ENOTDIR') {
      throw new TrawlError('config_missing', `${label}: expected a configuration file, found none`);
    }
    const found = code === 'EISDIR' ? 'a directory' : `one that cannot be read (${code ?? 'error'})`;
    throw new TrawlError('config_invalid', `${label}: expected a file, found ${found}`);
  }
  if (bytes.length > maxFileBytes) {
    throw new TrawlError('config_invalid', `${label}: expected at most ${maxFileBytes} bytes, found more`);
  }
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    throw new TrawlError('config_invalid', `${label}: expected UTF-8 text, found other bytes`);
  }
}

/** Reads up to `max` bytes, and one more when there are more; works on pipes. Throws the system's error. */
export function readBounded(file: string, max: number): Buffer {
  const fd = openSync(file, 'r');
  try {
    if (fstatSync(fd).isDirectory()) throw Object.assign(new Error('is a directory'), { code: 'EISDIR' });
    const buffer = Buffer.alloc(max + 1);
    let length = 0;
    while (length < buffer.length) {
      const read = readSync(fd, buffer, length, buffer.length - length, null);
      if (read === 0) break;
      length += read;
    }
    return buffer.subarray(0, length);
  } finally {
    closeSync(fd);
  }
}

/** What is wrong with the YAML itself. The parser's own messages quote the file, which may hold secrets. */
const yamlErrors: Record<string, string> = {
  BAD_INDENT: 'the indentation does not fit',
  TAB_AS_INDENT: 'tabs cannot indent',
  DUPLICATE_KEY: 'the same key twice',
  MULTIPLE_DOCS: 'more than one document in the file',
  MULTILINE_IMPLICIT_KEY: 'a key over several lines',
  MISSING_CHAR: 'a colon, comma, quote or bracket is missing',
  UNEXPECTED_TOKEN: 'something that does not belong here',
  BAD_ALIAS: 'an alias without its anchor',
};

/**
 * Turns YAML into plain values with the line of each. Variables are expanded in text values, not in keys. null and
 * text that expands to nothing count as not given. Aliases work; their number and the depth are bounded.
 */
export function parseYaml(text: string, env: NodeJS.ProcessEnv): { tree: Tree; problems: ConfigProblem[] } {
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false, uniqueKeys: false });
  const tree: Tree = { root: undefined, origins: new Map(), written: new Map() };
  const problems: ConfigProblem[] = [];
  const report = (
    path: Path,
    line: number,
    message: string,
    code: ConfigProblem['code'] = 'config_invalid',
  ) => problems.push({ path, origin: { line }, message, code });
  for (const error of document.errors) {
    const what = yamlErrors[error.code] ?? error.code.toLowerCase().replaceAll('_', ' ');
    report([], lines.linePos(error.pos[0]).line, `expected YAML, found a mistake: ${what}`);
  }
  if (problems.length > 0) return { tree, problems };

  let nodes = 0;
  const anchors = new Map<string, Node>();
  const lineOf = (node: Node | null, fallback: number) =>
    node?.range ? lines.linePos(node.range[0]).line : fallback;

  const visit = (node: Node | null, path: Path, parentLine: number, depth: number): unknown => {
    const line = lineOf(node, parentLine);
    nodes += 1;
    if (nodes > maxNodes || depth > maxYamlDepth) {
      const bound = nodes > maxNodes ? `${maxNodes} values, aliases counted` : `${maxYamlDepth} levels`;
      throw new TooBig(path, line, `expected at most ${bound}, found more`);
    }
    tree.origins.set(pathKey(path), { line });
    if (isAlias(node)) {
      const target = anchors.get(node.source);
      if (target !== undefined) return visit(target, path, line, depth + 1);
      report(path, line, `expected YAML, found a mistake: ${yamlErrors.BAD_ALIAS}`);
      return undefined;
    }
    // Anchors come before their aliases; the parser's own look-up reads the whole document for each alias.
    if (node?.anchor !== undefined) anchors.set(node.anchor, node);
    if (isYamlMap(node)) {
      const map: TreeMap = Object.create(null);
      for (const pair of node.items) {
        const keyLine = lineOf(pair.key as Node | null, line);
        const key = isScalar(pair.key) ? String(pair.key.value) : null;
        if (key === null || key === '__proto__' || key.includes('\0')) {
          report(
            path,
            keyLine,
            `expected a plain key, found ${key === null ? 'a structure' : 'one not allowed'}`,
          );
          continue;
        }
        const at = [...path, key];
        if (Object.hasOwn(map, key)) {
          report(at, keyLine, `expected each key once, found "${cleanText(key, 60)}" again`);
          continue;
        }
        map[key] = visit(pair.value as Node | null, at, keyLine, depth + 1);
        tree.origins.set(pathKey(at), { line: keyLine });
      }
      return map;
    }
    if (isSeq(node)) {
      return node.items.map((item, index) => visit(item as Node | null, [...path, index], line, depth + 1));
    }
    const value = isScalar(node) ? node.value : undefined;
    if (typeof value !== 'string') return value ?? undefined;
    return expandScalar(value, path, line);
  };

  const expandScalar = (value: string, path: Path, line: number): string | undefined => {
    const result = expand(value, env);
    if (result.malformed) {
      report(
        path,
        line,
        `expected \${NAME} or \${NAME:-default}, found a "\${" that is neither (write $\${ for a plain one)`,
      );
    }
    for (const name of result.missing) {
      const message = `expected the environment variable ${name} to be set, found it unset`;
      report(path, line, message, 'config_env_missing');
    }
    if (!result.expanded) return result.text;
    tree.written.set(pathKey(path), value);
    return result.text === '' ? undefined : result.text;
  };

  try {
    tree.root = visit(document.contents as Node | null, [], 1, 0);
  } catch (error) {
    if (!(error instanceof TooBig)) throw error;
    report(error.path, error.line, error.message);
  }
  return { tree, problems };
}

class TooBig extends Error {
  constructor(
    readonly path: Path,
    readonly line: number,
    message: string,
  ) {
    super(message);
  }
}
