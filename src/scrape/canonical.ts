import { hash } from 'node:crypto';

/** How deep documents from outside may nest; the recursions here rely on it. */
export const maxDepth = 64;

/**
 * JSON with the keys of every object in code unit order, so that equal content gives equal text. Only for values that
 * `checkJson` has passed.
 */
export function canonicalJson(value: unknown): string {
  if (value === null || typeof value !== 'object') return JSON.stringify(value) ?? 'null';
  // Plain concatenation: this runs for every line of a file, and lists to join cost twice as much.
  let text = '';
  if (Array.isArray(value)) {
    for (const member of value) text += text === '' ? canonicalJson(member) : `,${canonicalJson(member)}`;
    return `[${text}]`;
  }
  const object = value as Record<string, unknown>;
  for (const key of Object.keys(object).sort()) {
    const member = object[key];
    if (member === undefined) continue;
    if (text !== '') text += ',';
    text += `${JSON.stringify(key)}:${canonicalJson(member)}`;
  }
  return `{${text}}`;
}

/** The first 132 bits of sha256 as 22 base64url characters. */
export function shortHash(text: string): string {
  return hash('sha256', text, 'base64url').slice(0, 22);
}

/** Where a value stops being plain JSON, and why; null when all of it is. Never throws on plain data, cycles included. */
export function checkJson(
  value: unknown,
  bounds: { maxNodes: number },
): { path: string; message: string } | null {
  let nodes = 0;
  const visit = (node: unknown, path: string, depth: number): { path: string; message: string } | null => {
    nodes += 1;
    if (nodes > bounds.maxNodes) return { path: '', message: `holds more than ${bounds.maxNodes} values` };
    if (typeof node === 'string') {
      return node.includes('\0') ? { path, message: 'contains a NUL character' } : null;
    }
    if (node === null || typeof node === 'boolean') return null;
    if (typeof node === 'number') {
      return Number.isFinite(node) ? null : { path, message: 'is a number that JSON cannot hold' };
    }
    if (typeof node !== 'object') return { path, message: `is a ${typeof node}, which JSON cannot hold` };
    if (depth >= maxDepth) return { path: '', message: `nests deeper than ${maxDepth} levels` };
    if (Array.isArray(node)) {
      for (let index = 0; index < node.length; index += 1) {
        const found = visit(node[index], `${path}[${index}]`, depth + 1);
        if (found !== null) return found;
      }
      return null;
    }
    const prototype = Object.getPrototypeOf(node);
    if (prototype !== null && prototype !== Object.prototype) {
      return { path, message: 'is not a plain object' };
    }
    for (const key of Object.keys(node)) {
      if (key === '__proto__') return { path, message: 'holds a key "__proto__", which is not allowed' };
      if (key.includes('\0')) return { path, message: 'holds a key with a NUL character' };
      const member = (node as Record<string, unknown>)[key];
      // A producer's undefined is absent in JSON.
      if (member === undefined) continue;
      const found = visit(member, path === '' ? key : `${path}.${key}`, depth + 1);
      if (found !== null) return found;
    }
    return null;
  };
  return visit(value, '', 0);
}
