/**
 * A worker process for tests to kill. With `crashes` it kills itself wherever one of these scrapes takes it: at being
 * accepted, at the save of a poll, or at a page.
 */
import { loadConfig } from '../../src/config.js';
import { createLogger } from '../../src/logger.js';
import { createMetrics } from '../../src/metrics/index.js';
import { createFileSink } from '../../src/sinks/file.js';
import { Daemon } from '../../workers/daemon.js';
import type { Timing } from '../../workers/timing.js';

export interface ChildSettings {
  readonly config: string;
  readonly dir: string;
  readonly redis: string;
  readonly timing: Partial<Timing>;
  readonly crashes?: { readonly accept?: string; readonly poll?: string; readonly page?: string };
}

const settings = JSON.parse(process.argv[2] ?? '{}') as ChildSettings;
const config = loadConfig({ file: settings.config, env: {}, cwd: settings.dir });
const log = createLogger({ level: 'error', destination: { write: (line) => process.stderr.write(line) } });
const daemon = new Daemon({
  config,
  redis: { url: settings.redis, tls: false },
  sink: createFileSink({ dir: config.results.dir, gzip: false, log }),
  metrics: createMetrics({ version: 'test', servers: { apify: { tools: [] } } }),
  log,
  intake: true,
  timing: settings.timing,
});

const { accept, poll, page } = settings.crashes ?? {};
const crash = () => process.kill(process.pid, 'SIGKILL');
const { sink, store } = daemon.ctx;
const find = sink.find.bind(sink);
sink.find = (batch, id) => {
  if (id === accept) crash();
  return find(batch, id);
};
const writePage = sink.writePage.bind(sink);
sink.writePage = (target, written) => {
  if (target.id === page) crash();
  return writePage(target, written);
};
const advance = store.advance.bind(store);
store.advance = (attempt, lock, from, phase, patch) => {
  if (attempt.scrape === `default.${poll}` && patch.polls !== undefined) crash();
  return advance(attempt, lock, from, phase, patch);
};

process.once('disconnect', () => process.exit(1));
await daemon.start();
process.send?.('ready');
