import { type Command, Option } from 'commander';
import { ExitCode, TrawlError } from '../errors.js';
import { findRedisBinary } from '../redis/find-binary.js';
import { defaultBatch } from '../scrape/identity.js';
import { batchOfFile } from '../scrape/job-source.js';
import { fleetOf } from './fleet.js';
import { counted, moment } from './format.js';
import { type CheckedJobs, checkJobs } from './jobs.js';
import {
  batchArgument,
  type CommonOptions,
  durationArgument,
  moneyArgument,
  readConfig,
  withExamples,
  withJsonOption,
} from './options.js';
import { outColors, print, printJson, say } from './output.js';
import { confirmCost } from './run/confirm.js';
import { Notices } from './run/notices.js';
import { RunSession } from './run/session.js';
import { exitCodeOf, type RunSummary, summaryJson, summaryLines } from './run/summary.js';
import { survey } from './run/survey.js';
import type { Tally } from './run/tally.js';
import { Signals } from './signals.js';
import type { WorkerProcess } from './worker-process.js';

/** All is settled: what is left to stop is idle. */
const stopMs = 2_000;
/** Stopping a private Redis takes a fraction of this. */
const leaveMs = 2_000;

export interface RunOptions extends CommonOptions {
  readonly batch?: string;
  readonly again?: boolean;
  readonly confirmOver: number;
  readonly yes?: boolean;
  readonly metrics?: boolean;
  readonly redisWait: number;
}

/** Adds `trawl run`: from a file of jobs to results on disk, in this process. */
export function registerRun(program: Command): void {
  const command = program
    .command('run')
    .description('submit the jobs of FILE and work in this process until all are settled')
    .argument('<file>', 'jobs, one JSON document a line; - for stdin')
    .option(
      '--batch <name>',
      "batch of all jobs (default: the job's own, else the file's base name)",
      batchArgument,
    )
    .option('--again', 'run it anew, in a batch of its own: the name and the time')
    .option('--confirm-over <usd>', 'ask before spending more than this', moneyArgument, 20)
    .option('--yes', 'do not ask')
    .option('--metrics', 'serve /metrics, /healthz and /readyz meanwhile (http.host, http.port)')
    .addOption(
      new Option('--redis-wait <duration>', 'leave when Redis does not answer for this long')
        .argParser(durationArgument)
        .default(120_000, '2m'),
    )
    .action(async (file: string, _options: RunOptions, self: Command) => {
      process.exitCode = await run(file, self.optsWithGlobals<RunOptions>());
    });
  withJsonOption(command, 'print the summary as one JSON document');
  withExamples(
    command,
    'trawl run leads.ndjson                   run again after an interruption, it resumes and repeats nothing',
    'trawl run leads.ndjson --again           all of it anew, in batch leads-20261202-140322',
    'generate-jobs | trawl run - --batch leads --yes',
    '',
    'Ctrl-C once: nothing more is started, and runs under way are waited for. Ctrl-C twice: leaves at once; runs under way',
    'go on at the server, and the same command picks them up.',
    'Exit codes: 0 all succeeded, 1 a failure, 2 usage or configuration, 3 only warnings, 4 interrupted: run it again.',
  );
}

async function run(file: string, options: RunOptions): Promise<number> {
  const notices = new Notices();
  const { config, log } = readConfig(options, (levels) => notices.logger(levels));
  // Without any Redis nothing can be done; that is said before a long file is read.
  if (config.redis.url === '' && !config.redis.sentinel) findRedisBinary(process.env.PATH);
  const jobs = await checkJobs(file, config, batchOf(file, options));
  const signals = new Signals();
  // Loaded late: a file that cannot be used is said to be so at once.
  const { prepareWorkerProcess } = await import('./worker-process.js');
  const worker = await prepareWorkerProcess({ config, log, intake: false }).catch(async (error) => {
    await jobs.close();
    throw error;
  });
  const begun = Date.now();
  const fleet = fleetOf(worker, config);
  const prepare = async () => {
    const found = await survey(jobs, fleet, config);
    refuseSettled(found.tally, jobs, file);
    await confirmCost(found.estimate, options, file === '-');
    return found;
  };
  try {
    const found = await Promise.race([prepare(), signals.first.then(() => null)]);
    if (found === null) {
      say('Interrupted; nothing was submitted.');
      return leave(worker, notices);
    }
    if (options.metrics) await serveMetrics(worker);
    const session = new RunSession({
      worker,
      fleet,
      jobs,
      survey: found,
      notices,
      signals,
      redisWaitMs: options.redisWait,
    });
    const end = await session.work();
    const summary: RunSummary = {
      label: jobs.label,
      batch: jobs.batch,
      batches: found.batches,
      tally: found.tally,
      submitted: session.submitted,
      tookMs: Date.now() - begun,
      resultsDir: config.results.dir,
      gzip: config.results.gzip,
      end,
    };
    if (options.json) printJson(summaryJson(summary));
    else for (const line of summaryLines(summary, outColors())) print(line);
    if (end === 'left' || end === 'redis_away') return leave(worker, notices);
    if (end === 'stopped') await worker.stop(config.shutdown.graceMs);
    return exitCodeOf(summary);
  } catch (error) {
    throw worker.asRedisError(error);
  } finally {
    await Promise.race([worker.stop(stopMs), signals.second]);
    await jobs.close();
    signals.close();
  }
}

/** Leaves at once, as a crash would, save that a private Redis nobody else uses is stopped and does not stay behind. */
async function leave(worker: WorkerProcess, notices: Notices): Promise<never> {
  // Connections that break on the way out are no news.
  notices.write = () => {};
  const late = new Promise((resolve) => setTimeout(resolve, leaveMs));
  await Promise.race([worker.abandon().catch(() => {}), late]);
  process.exit(ExitCode.interrupted);
}

/** `--again`: the batch the jobs would have, and the time, so that nothing of it is known. */
function batchOf(file: string, { batch, again }: RunOptions): string | undefined {
  if (!again) return batch;
  const stamp = moment(Date.now()).replace(/[-:]/g, '').replace(' ', '-');
  return `${(batch ?? (file === '-' ? defaultBatch : batchOfFile(file))).slice(0, 100)}-${stamp}`;
}

/** Running a file again that is all settled would do nothing; that is most likely not what was meant (design A2). */
function refuseSettled(tally: Tally, jobs: CheckedJobs, file: string): void {
  if (tally.settled < tally.total) return;
  const when = tally.lastFinishedAt === null ? '' : `, the last at ${moment(tally.lastFinishedAt)}`;
  const name = file === '-' ? '-' : jobs.label;
  throw new TrawlError(
    'batch_settled',
    `All ${counted(tally.total, 'scrape')} of ${jobs.label} (batch ${jobs.batch}) settled already${when}.`,
    {
      hint: `To run it anew: trawl run ${name} --batch NAME, or trawl run ${name} --again. A failed one alone: trawl retry ID.`,
    },
  );
}

/** Somebody else's port must not keep a batch from running. */
async function serveMetrics(worker: { serve(): Promise<string> }): Promise<void> {
  try {
    say(`Metrics and health on ${await worker.serve()}`);
  } catch (error) {
    if (!(error instanceof TrawlError)) throw error;
    say(`No metrics: ${error.message}`);
  }
}
