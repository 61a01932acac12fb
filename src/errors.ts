/** Exit codes of every command (design A6). */
export const ExitCode = { ok: 0, failure: 1, usage: 2, warnings: 3, interrupted: 4 } as const;

/**
 * Every error Trawl raises on purpose. `docs/errors.md` documents each code and a test keeps it complete.
 * - `config_*`, `job_*`, `usage_*` mean that the caller has to change something (exit code 2).
 * - `redis_*` mean that the same call may work later (exit code 4).
 */
export const errorCodes = {
  config_invalid: 2,
  config_missing: 2,
  config_env_missing: 2,
  config_secret_unreadable: 2,
  job_invalid: 2,
  job_conflict: 2,
  input_unreadable: 2,
  input_empty: 2,
  batch_settled: 2,
  usage_invalid: 2,
  server_unknown: 2,
  scrape_unknown: 2,
  tools_missing: 2,
  server_failed: 1,
  redis_unreachable: 4,
  redis_unfit: 2,
  redis_binary_missing: 2,
  sink_unwritable: 1,
  attempt_superseded: 1,
  http_listen_failed: 2,
  lock_lost: 1,
  page_unknown: 2,
  http_host_refused: 2,
  http_origin_refused: 2,
  http_token_unset: 2,
  http_token_missing: 2,
  http_token_wrong: 2,
  http_too_many: 4,
} as const;

export type ErrorCode = keyof typeof errorCodes;

/** An error with a stable `code`, the exit code a command ends with, and `hint`: what to do next. */
export class TrawlError extends Error {
  readonly code: ErrorCode;
  readonly exitCode: number;
  readonly hint: string | undefined;

  constructor(code: ErrorCode, message: string, options: { hint?: string; cause?: unknown } = {}) {
    super(message, { cause: options.cause });
    this.name = 'TrawlError';
    this.code = code;
    this.exitCode = errorCodes[code];
    this.hint = options.hint;
  }
}
