/** Levels of the log, and the parts of Trawl that can have one of their own. No I/O. */

export const logLevels = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'] as const;
export type LogLevel = (typeof logLevels)[number];

/** What logs what: the key is also the `module` of each of its lines. Lines of the process as a whole have none. */
export const logModules = ['scrape', 'queue', 'mcp', 'intake', 'fleet', 'sink', 'redis', 'http'] as const;
export type LogModule = (typeof logModules)[number];

/** Levels as configured, or as in force now. */
export interface LogLevels {
  /** Of every module without a level of its own, and of the process. */
  readonly level: LogLevel;
  readonly modules: Readonly<Partial<Record<LogModule, LogLevel>>>;
}

/** What an operator asked for, until it runs out; `all` is every module at once. */
export type LogOverrides = Readonly<Partial<Record<LogModule | 'all', LogLevel>>>;

export const isLogLevel = (word: string): word is LogLevel => (logLevels as readonly string[]).includes(word);
export const isLogModule = (word: string): word is LogModule =>
  (logModules as readonly string[]).includes(word);

/** The most specific word counts, and what was asked for at run time more than what is configured. */
export function levelsInForce(configured: LogLevels, overrides: LogOverrides): LogLevels {
  const modules: Partial<Record<LogModule, LogLevel>> = {};
  for (const module of logModules) {
    const level = overrides[module] ?? overrides.all ?? configured.modules[module];
    if (level !== undefined) modules[module] = level;
  }
  return { level: overrides.all ?? configured.level, modules };
}

export const levelOf = ({ level, modules }: LogLevels, module: LogModule): LogLevel =>
  modules[module] ?? level;
