import { openSync, writeSync } from 'node:fs';
import { prepareWorkerProcess } from '../../src/cli/worker-process.js';
import { loadConfig } from '../../src/config.js';
import { createLogger } from '../../src/logger.js';
import { defaultTiming, type Timing } from '../../workers/timing.js';

export interface WorkerSettings {
  readonly config: string;
  readonly log: string;
  /** Of the rules' windows, and of the worker's own spans. */
  readonly windowFactor: number;
}

/**
 * What a server is given before it is tried again goes by the rules' factor. Locks stay as they are: a busy machine freezes a
 * process for a second or two, and that does not scale.
 */
function shortened(factor: number): Partial<Timing> {
  const of = (ms: number, least: number) => Math.max(least, Math.round(ms * factor));
  const spans = defaultTiming;
  return {
    certainAfterMs: of(spans.certainAfterMs, 5_000),
    unknownAfterMs: of(spans.unknownAfterMs, 15_000),
    refusalPatienceMs: of(spans.refusalPatienceMs, 1_000),
    orphanAfterMs: of(spans.orphanAfterMs, 1_000),
    sweepEveryMs: of(spans.sweepEveryMs, 1_000),
    probeEveryMs: of(spans.probeEveryMs, 1_000),
    reapEveryMs: of(spans.reapEveryMs, 2_000),
    firstTrialMs: of(spans.firstTrialMs, 1_000),
    trialEveryMs: of(spans.trialEveryMs, 1_000),
    leaseMs: of(spans.leaseMs, 5_000),
    toolsFreshMs: of(spans.toolsFreshMs, 5_000),
    connectTimeoutMs: of(spans.connectTimeoutMs, 5_000),
    // An answer is slow after 15 s, whatever the factor: that is a bucket of the histogram.
    callTimeoutMs: of(spans.callTimeoutMs, 22_000),
  };
}

/** `trawl work` with shorter spans, until it is told to stop. */
async function main({ config: file, log: logFile, windowFactor }: WorkerSettings): Promise<void> {
  const config = loadConfig({ file, env: {}, cwd: process.cwd() });
  const to = openSync(logFile, 'a');
  const log = createLogger({ level: 'info', destination: { write: (line) => writeSync(to, line) } });
  for (const server of Object.values(config.servers)) log.registerSecret(server.token);
  const worker = await prepareWorkerProcess({ config, log, intake: true, timing: shortened(windowFactor) });
  process.once('SIGTERM', () => void worker.stop(config.shutdown.graceMs).then(() => process.exit(0)));
  // The rehearsal is gone: nobody would ever stop this process.
  process.once('disconnect', () => process.exit(1));
  await worker.serve();
  await worker.start();
  process.send?.('ready');
}

main(JSON.parse(process.argv[2] ?? '{}') as WorkerSettings).catch((error: unknown) => {
  process.stderr.write(`${error instanceof Error ? error.stack : String(error)}\n`);
  process.exit(1);
});
