import { loadConfig } from '../src/config.js';
import { createLogger } from '../src/logger.js';
import { createMetrics } from '../src/metrics/index.js';
import { createFileSink } from '../src/sinks/file.js';
import { Daemon } from '../workers/daemon.js';
import type { Timing } from '../workers/timing.js';

/** One worker process, as `trawl work` sets it up. */
process.once('message', async (message: { config: string; redis: string; timing?: Partial<Timing> }) => {
  const config = loadConfig({ file: message.config, env: {}, cwd: process.cwd() });
  const log = createLogger({ level: 'warn' });
  const servers = Object.fromEntries(
    Object.entries(config.servers).map(([name, server]) => [name, { tools: Object.keys(server.tools) }]),
  );
  const daemon = new Daemon({
    config,
    redis: { url: message.redis, tls: false },
    sink: createFileSink({ dir: config.results.dir, gzip: false }),
    metrics: createMetrics({ version: 'bench', servers }),
    log,
    intake: false,
    ...(message.timing === undefined ? {} : { timing: message.timing }),
  });
  await daemon.start();
  let peak = 0;
  setInterval(() => {
    peak = Math.max(peak, process.memoryUsage().rss);
  }, 200).unref();
  process.send?.({ started: true });
  process.on('message', () => process.send?.({ rss: peak, cpu: process.cpuUsage() }));
});
