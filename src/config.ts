/**
 * The parsed, cross-checked and frozen configuration (design A3). Durations are milliseconds, sizes are bytes
 * (memory: MB), whatever unit the file used.
 */
export interface Config {
  /** Absolute path of the file it came from; relative paths in it are resolved against its folder. null: built-in. */
  readonly file: string | null;
  readonly redis: {
    readonly url: string;
    readonly username?: string;
    readonly password?: string;
    readonly db?: number;
  };
  readonly prefix: string;
  readonly servers: Readonly<Record<string, ServerConfig>>;
  readonly start: { readonly timeoutMs: number };
  readonly poll: { readonly intervalMs: number; readonly waitSecs: number };
  readonly deadlineMs: number;
  readonly keep: { readonly settledMs: number; readonly failedMs: number; readonly max: number };
  readonly results: {
    readonly sink: 'file';
    /** Absolute. */
    readonly dir: string;
    readonly gzip: boolean;
    readonly pageBytes: number;
  };
  readonly limits: { readonly inputBytes: number; readonly answerBytes: number };
  readonly intake: { readonly stream: boolean; readonly list: boolean; readonly backlog: number };
  readonly http: { readonly host: string; readonly port: number };
  readonly shutdown: { readonly graceMs: number };
  readonly brake: { readonly window: number; readonly badRatio: number; readonly action: 'hold' | 'warn' };
  readonly log: { readonly level: string };
  /** What is allowed but looks wrong; printed once at the start. */
  readonly warnings: readonly string[];
}

export interface ServerConfig {
  readonly name: string;
  readonly profile: 'apify';
  readonly url: string;
  readonly token: string;
  readonly via: 'auto' | 'direct';
  /** By canonical Actor name `user/name`. */
  readonly tools: Readonly<Record<string, ToolConfig>>;
  readonly limits: {
    readonly runs: number;
    readonly requestsPerSecond: number;
    readonly memoryMb: number | null;
  };
}

export interface ToolConfig {
  readonly name: string;
  readonly deadlineMs: number | null;
  readonly memory: number | null;
  readonly minItems: number | null;
  readonly price: { readonly start: number; readonly item: number } | null;
}
