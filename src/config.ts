import type { LogLevels } from './log-levels.js';

export { loadConfig, minimalConfig } from './config/load.js';
export { type ConfigOptions, overridePrefix } from './config/overrides.js';
export { configSecrets, describeConfig, redact } from './config/secrets.js';

/**
 * The parsed, cross-checked and frozen configuration (design A3). Durations are milliseconds, sizes are bytes
 * (memory: MB), whatever unit the file used. Secrets are ordinary strings here, but `JSON.stringify` and
 * `util.inspect` of the configuration or of a part of it show `[secret]` in their place.
 */
export interface Config {
  /** Absolute path of the file it came from; relative paths in it are resolved against its folder. null: built-in. */
  readonly file: string | null;
  readonly redis: {
    /** `redis://host:port`, `rediss://host:port`, an absolute socket path, or '' for a private one. No credentials. */
    readonly url: string;
    readonly username?: string;
    readonly password?: string;
    readonly db?: number;
    readonly tls: boolean;
    /** Present: connect through Sentinel; `url` is '' then. */
    readonly sentinel?: SentinelConfig;
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
  /**
   * Without a `token` nothing can be changed over HTTP. `names`: host names, beside addresses and `localhost`, under which
   * the page may be asked for. `trustedProxies`: addresses and blocks of them whose word on who asks through them is taken.
   */
  readonly http: {
    readonly host: string;
    readonly port: number;
    readonly token: string | null;
    readonly names: readonly string[];
    readonly trustedProxies: readonly string[];
  };
  readonly shutdown: { readonly graceMs: number };
  /** Wait before the next attempt of a scrape; doubles with each, up to 15 minutes. */
  readonly retry: { readonly backoffMs: number };
  readonly brake: { readonly window: number; readonly badRatio: number; readonly action: 'hold' | 'warn' };
  /** OpenTelemetry over OTLP/HTTP. `endpoint` '': off. `ratio` of the traces that begin here. */
  readonly traces: { readonly endpoint: string; readonly headers: string; readonly ratio: number };
  readonly log: LogLevels;
  /** What is allowed but looks wrong; printed once at the start. */
  readonly warnings: readonly string[];
}

export interface SentinelConfig {
  /** Name of the master group. */
  readonly name: string;
  readonly hosts: readonly { readonly host: string; readonly port: number }[];
  /** Of the Sentinels themselves. */
  readonly username?: string;
  readonly password?: string;
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
