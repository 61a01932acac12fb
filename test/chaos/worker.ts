import { openSync, writeSync } from 'node:fs';
import { loadConfig } from '../../src/config.js';
import { createLogger } from '../../src/logger.js';
import { createMetrics } from '../../src/metrics/index.js';
import type { Sink } from '../../src/sinks/contract.js';
import { createFileSink } from '../../src/sinks/file.js';
import { Daemon } from '../../workers/daemon.js';
import { switchOff } from './guards.js';
import { notStarted, type WorkerSettings } from './worker-settings.js';

/** One worker process of the chaos run. */
async function main(settings: WorkerSettings): Promise<void> {
  const config = loadConfig({ file: settings.config, env: {}, cwd: process.cwd() });
  const file = openSync(settings.log, 'a');
  const log = createLogger({ level: 'info', destination: { write: (line) => writeSync(file, line) } });
  const sink = slow(createFileSink({ dir: config.results.dir, gzip: config.results.gzip, log }));
  await sink.check();
  const servers = Object.fromEntries(
    Object.values(config.servers).map(({ name, tools }) => [name, { tools: Object.keys(tools) }]),
  );
  const daemon = new Daemon({
    config,
    redis: { url: settings.redis, tls: false },
    sink,
    metrics: createMetrics({ version: 'chaos', servers }),
    log,
    intake: true,
    timing: settings.timing,
  });
  if (settings.without !== null) switchOff(daemon, settings.without);
  repeatHandOns(daemon, settings.repeatHandOns);
  process.once('SIGTERM', () => void daemon.stop(config.shutdown.graceMs).then(() => process.exit(0)));
  // The harness is gone: nobody would ever stop this process.
  process.once('disconnect', () => process.exit(1));
  await daemon.start();
  process.send?.('ready');
}

/** A disk on which a page that is durable may take its time to say so: the moment between a page and its checkpoint. */
function slow(sink: Sink): Sink {
  const writePage = sink.writePage.bind(sink);
  sink.writePage = async (target, page) => {
    const written = await writePage(target, page);
    if (Math.random() < 0.3) await new Promise((resolve) => setTimeout(resolve, Math.random() * 500));
    return written;
  };
  return sink;
}

/** Whoever adds a job and never hears of it adds it again; that must be nothing. */
function repeatHandOns(daemon: Daemon, chance: number): void {
  const { queues } = daemon.ctx;
  const addStage = queues.addStage.bind(queues);
  queues.addStage = async (...args) => {
    await Promise.all(Math.random() < chance ? [addStage(...args), addStage(...args)] : [addStage(...args)]);
  };
}

main(JSON.parse(process.argv[2] ?? '{}') as WorkerSettings).catch((error: unknown) => {
  process.stderr.write(`${error instanceof Error ? error.stack : String(error)}\n`);
  process.exit(notStarted);
});
