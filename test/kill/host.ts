import { type Config, loadConfig } from '../../src/config.js';
import { createLogger } from '../../src/logger.js';
import { createMetrics } from '../../src/metrics/index.js';
import { createFileSink } from '../../src/sinks/file.js';
import { Daemon } from '../../workers/daemon.js';

/** Short spans, so that two kills in a row and a recovery take seconds. */
const timing = {
  lockMs: 2_000,
  stalledEveryMs: 500,
  certainAfterMs: 3_000,
  sweepEveryMs: 1_000,
  reapEveryMs: 2_000,
};

/** A daemon of one case: its own prefix and results, the Redis and the server of all. */
export function openDaemon(file: string): { readonly daemon: Daemon; readonly config: Config } {
  const config = loadConfig({ file, env: {}, cwd: process.cwd() });
  const log = createLogger({ level: 'silent', destination: { write: () => {} } });
  const daemon = new Daemon({
    config,
    redis: config.redis,
    sink: createFileSink({ dir: config.results.dir, gzip: false }),
    metrics: createMetrics({ version: 'test', servers: { apify: { tools: [] } } }),
    log,
    intake: false,
    timing,
  });
  return { daemon, config };
}
