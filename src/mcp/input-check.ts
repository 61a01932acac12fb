import { Ajv, type ErrorObject, type ValidateFunction } from 'ajv';
import addFormats from 'ajv-formats';
import { guardedPattern } from './guarded-pattern.js';
import { cleanMessage } from './message.js';

/** A schema with more parts than this is not compiled: the check is a kindness, the server decides. */
const maxSchemaParts = 20_000;
const maxProblems = 10;

/** Compiled once per schema object; a schema that is no longer listed takes its compiled form with it. */
const compiled = new WeakMap<object, ValidateFunction | null>();

/**
 * What is wrong with an input by the Actor's own schema, as sentences (`/location: must be string`), at most ten; none
 * when it fits or cannot be checked. It refuses nothing the server would take: types are coerced as the server does,
 * required fields with a default count as given, unknown keywords and formats and schemas that do not compile are let
 * pass, and references to other documents are not followed. Never throws, never changes the input.
 */
export function checkInput(schema: object, input: Readonly<Record<string, unknown>>): string[] {
  try {
    let validate = compiled.get(schema);
    if (validate === undefined) {
      validate = compile(schema);
      compiled.set(schema, validate);
    }
    // Coercion writes into what it checks.
    if (validate === null || validate(structuredClone(input))) return [];
    return problemsOf(validate.errors ?? []);
  } catch {
    return [];
  }
}

function compile(schema: object): ValidateFunction | null {
  if (!isModest(schema)) return null;
  // An instance of its own for each schema: two schemas may carry the same $id.
  const ajv = new Ajv({
    strict: false,
    allErrors: true,
    coerceTypes: 'array',
    validateSchema: false,
    addUsedSchema: false,
    logger: false,
    ownProperties: true,
    code: { regExp: Object.assign(guardedPattern, { code: 'guardedPattern' }) },
  });
  addFormats.default(ajv, { mode: 'fast' });
  // Quadratic for objects; the server looks again.
  ajv.removeKeyword('uniqueItems');
  try {
    return ajv.compile(tolerant(schema as Record<string, unknown>));
  } catch {
    return null;
  }
}

/** Without the dialect, whose own schema ajv may not know, and without requiring what has a default. */
function tolerant(schema: Record<string, unknown>): Record<string, unknown> {
  const { $schema: _dialect, $id: _id, ...rest } = schema;
  const { required, properties } = rest;
  if (!Array.isArray(required) || typeof properties !== 'object' || properties === null) return rest;
  const hasDefault = (name: unknown) => {
    const field = typeof name === 'string' ? (properties as Record<string, unknown>)[name] : undefined;
    return (
      typeof field === 'object' && field !== null && (field as { default?: unknown }).default !== undefined
    );
  };
  return { ...rest, required: required.filter((name) => !hasDefault(name)) };
}

function isModest(schema: object): boolean {
  const open: unknown[] = [schema];
  let parts = 0;
  while (open.length > 0) {
    const part = open.pop();
    if (typeof part !== 'object' || part === null) continue;
    parts += 1;
    if (parts > maxSchemaParts) return false;
    open.push(...Object.values(part));
  }
  return true;
}

function problemsOf(errors: readonly ErrorObject[]): string[] {
  const problems = new Set<string>();
  for (const error of errors) {
    if (problems.size >= maxProblems) break;
    const { additionalProperty, allowedValues } = error.params as Record<string, unknown>;
    let detail = '';
    if (additionalProperty !== undefined) detail = `: ${String(additionalProperty)}`;
    else if (Array.isArray(allowedValues)) detail = `: ${allowedValues.slice(0, 10).join(', ')}`;
    problems.add(
      cleanMessage(`${error.instancePath || 'input'}: ${error.message ?? error.keyword}${detail}`, [], 200),
    );
  }
  return [...problems];
}
