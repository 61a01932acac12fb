import { prepareWorkerProcess, type WorkerProcess } from '../../src/cli/worker-process.js';
import { createLogger } from '../../src/logger.js';
import { Bench, type BenchOptions } from '../workers/harness.js';

export const token = 'a-token-for-the-page-of-tests';

/** A real worker process with everything it serves, in front of the simulator. */
export interface Site {
  readonly bench: Bench;
  readonly worker: WorkerProcess;
  readonly url: string;
  readonly logged: Record<string, unknown>[];
  close(): Promise<void>;
}

export async function openSite(options: BenchOptions = {}): Promise<Site> {
  const bench = await Bench.open({ ...options, config: { http: { port: 0, token }, ...options.config } });
  const logged: Record<string, unknown>[] = [];
  const log = createLogger({
    level: process.env.TRAWL_TEST_LOG ?? 'info',
    destination: {
      write: (line) => {
        if (process.env.TRAWL_TEST_LOG) process.stderr.write(line);
        logged.push(JSON.parse(line) as Record<string, unknown>);
      },
    },
  });
  const worker = await prepareWorkerProcess({ config: bench.config, log, intake: true });
  const url = await worker.serve();
  await worker.start();
  return {
    bench,
    worker,
    url,
    logged,
    async close() {
      await worker.stop(2_000);
      await bench.close();
    },
  };
}
