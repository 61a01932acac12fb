const reference = /\$\$\{|\$\{([A-Za-z_][A-Za-z0-9_]{0,127})(?::-([^}]*))?\}|\$\{/g;

export interface Expansion {
  readonly text: string;
  /** Whether any variable was put in. */
  readonly expanded: boolean;
  /** Variables without a value and without a default. */
  readonly missing: readonly string[];
  /** Holds a `${` that is neither form. */
  readonly malformed: boolean;
}

/**
 * Puts environment variables into a value: `${NAME}`, and `${NAME:-default}` where an empty variable counts as unset,
 * as in a shell. `$${` stands for a plain `${`. What is put in is not expanded again.
 */
export function expand(text: string, env: NodeJS.ProcessEnv): Expansion {
  const missing: string[] = [];
  let expanded = false;
  let malformed = false;
  const result = text.replace(reference, (match, name: string | undefined, fallback: string | undefined) => {
    if (match === '$${') return '${';
    if (name === undefined) {
      malformed = true;
      return match;
    }
    expanded = true;
    const value = env[name];
    if (fallback !== undefined) return value === undefined || value === '' ? fallback : value;
    if (value === undefined) {
      missing.push(name);
      return '';
    }
    return value;
  });
  return { text: result, expanded, missing, malformed };
}
