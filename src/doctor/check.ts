/** What one look at the surroundings found. `hint` says what to do, and is there for everything but `ok`. */
export interface Check {
  /** Short and stable: `version`, `eviction policy`. */
  readonly name: string;
  readonly ok: 'ok' | 'warn' | 'fail';
  readonly message: string;
  readonly hint: string | null;
}

export const ok = (name: string, message: string): Check => ({ name, ok: 'ok', message, hint: null });
export const warn = (name: string, message: string, hint: string): Check => ({
  name,
  ok: 'warn',
  message,
  hint,
});
export const fail = (name: string, message: string, hint: string): Check => ({
  name,
  ok: 'fail',
  message,
  hint,
});
