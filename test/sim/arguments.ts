import { Ajv, type ErrorObject, type ValidateFunction } from 'ajv';
import type { ActorSpec } from './actors/actor.js';
import type { Conditions } from './conditions.js';
import { definitionOf } from './toolset.js';

/**
 * Checks arguments the way the real server does: types are coerced in place (`"10"` is a limit), keys that a schema
 * forbids are dropped without a word, defaults are not filled in, `required` keys with a default are optional.
 */
export class ArgumentChecks {
  #ajv = newAjv();
  #compiled = new Map<string, ValidateFunction>();
  #compiledFor = '';

  /** null when the arguments fit; else the validator's errors. `args` may be changed in place. */
  check(
    name: string,
    actor: ActorSpec | null,
    args: Record<string, unknown>,
    conditions: Conditions,
  ): ErrorObject[] | null {
    const schemas =
      conditions.changedSchemas.length === 0
        ? String(conditions.waitSecsCap)
        : `${conditions.waitSecsCap} ${conditions.changedSchemas.join()}`;
    if (this.#compiledFor !== schemas) {
      this.#compiledFor = schemas;
      this.#compiled = new Map();
      this.#ajv = newAjv();
    }
    let validate = this.#compiled.get(name);
    if (validate === undefined) {
      const { $id: _, ...schema } = definitionOf(name, actor, conditions).inputSchema;
      validate = this.#ajv.compile(schema);
      this.#compiled.set(name, validate);
    }
    return validate(args) ? null : (validate.errors ?? []);
  }
}

function newAjv(): Ajv {
  return new Ajv({ coerceTypes: 'array', strict: false, removeAdditional: true });
}

/** `/limit: must be >= 1`, as the recorded validation errors list them. */
export function errorList(errors: readonly ErrorObject[]): string {
  return errors.map((error) => `${error.instancePath || 'root'}: ${error.message ?? ''}`).join('; ');
}

/** The -32602 message of a call whose arguments do not fit (poll-wait-above-cap.json, start-missing-argument.json). */
export function invalidArguments(name: string, errors: readonly ErrorObject[]): string {
  return `MCP error -32602: Invalid arguments for tool "${name}".\nValidation errors: ${errorList(errors)}.\nPlease check the tool's input schema using fetch-actor-details tool and ensure all required parameters are provided with correct types and values.`;
}

export function missingArguments(name: string): string {
  return `MCP error -32602: Missing arguments for tool "${name}".\nPlease provide the required arguments for this tool. Check the tool's input schema using fetch-actor-details tool to see what parameters are required.`;
}

/** unknown-tool.json */
export function unknownTool(name: string, available: readonly string[]): string {
  return `MCP error -32602: Tool "${name}" was not found.\nAvailable tools: ${available.length > 0 ? available.join(', ') : 'none'}.\nPlease verify the tool name is correct. You can list all available tools using the tools/list request.`;
}
