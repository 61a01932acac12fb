import type { Command } from 'commander';
import { publicBacklog } from '../queue/status.js';
import { submitScrapes } from '../queue/submit.js';
import { openTracing } from '../tracing/open.js';
import { type Fleet, hasWorker, withFleet } from './fleet.js';
import { counted, number } from './format.js';
import { type CheckedJobs, Conflicts, checkJobs, chunks, lookUpAll } from './jobs.js';
import {
  batchArgument,
  type CommonOptions,
  quietLogger,
  readConfig,
  withExamples,
  withJsonOption,
} from './options.js';
import { print, printJson, say } from './output.js';

interface SubmitOptions extends CommonOptions {
  readonly batch?: string;
}

interface Submission {
  submitted: number;
  /** Known already and not settled. */
  underWay: number;
  settled: number;
  readonly batches: Set<string>;
}

const fullWaitMs = 1_000;

/** Adds `trawl submit`: jobs go into the queue, workers elsewhere do them. */
export function registerSubmit(program: Command): void {
  const command = program
    .command('submit')
    .description('submit the jobs of FILE to the queue and return; workers (trawl work) do them')
    .argument('<file>', 'jobs, one JSON document a line; - for stdin')
    .option(
      '--batch <name>',
      "batch of all jobs (default: the job's own, else the file's base name)",
      batchArgument,
    )
    .action(async (file: string, _options: SubmitOptions, self: Command) => {
      await submit(file, self.optsWithGlobals<SubmitOptions>());
    });
  withJsonOption(command);
  withExamples(
    command,
    'trawl submit leads.ndjson && trawl watch',
    'generate-jobs | trawl submit - --batch leads',
    '',
    'The file is checked as a whole first: with bad lines nothing is submitted (exit code 2).',
    'Scrapes that are known are not submitted again; nothing is done or paid for twice.',
  );
}

async function submit(file: string, options: SubmitOptions): Promise<void> {
  const { config, log } = readConfig(options, quietLogger);
  const jobs = await checkJobs(file, config, options.batch);
  const tracing = await openTracing(config, log);
  try {
    await withFleet(config, log, async (opened) => {
      const fleet = { ...opened, tracing };
      await refuseConflicts(jobs, fleet);
      const done = await submitAll(jobs, fleet);
      report(done, options.json === true);
      if (!(await hasWorker(fleet))) say('No worker is running. Start one: trawl work');
    });
  } finally {
    await tracing.close();
    await jobs.close();
  }
}

/** Looked for in the whole file before the first scrape is submitted. */
async function refuseConflicts(jobs: CheckedJobs, { redis, keys, sink }: Fleet): Promise<void> {
  const conflicts = new Conflicts();
  for await (const { key, known } of lookUpAll(jobs, { redis: { client: redis, keys }, sink })) {
    if (known.state === 'conflict') conflicts.add(key);
  }
  conflicts.throwIfAny(jobs.label);
}

async function submitAll(jobs: CheckedJobs, fleet: Fleet): Promise<Submission> {
  const done: Submission = { submitted: 0, underWay: 0, settled: 0, batches: new Set() };
  const conflicts = new Conflicts();
  for await (const chunk of chunks(jobs)) {
    await room(fleet);
    for (const scrape of chunk) done.batches.add(scrape.batch);
    for (const { result, key } of await submitScrapes(fleet, chunk)) {
      switch (result) {
        case 'submitted':
          done.submitted += 1;
          break;
        case 'known':
          done.underWay += 1;
          break;
        case 'settled':
          done.settled += 1;
          break;
        case 'conflict':
          // Somebody else submitted it a moment ago.
          conflicts.add(key);
          break;
        default:
          result satisfies never;
      }
    }
  }
  conflicts.throwIfAny(jobs.label);
  return done;
}

/** A full backlog (intake.backlog) is waited for, as the other ways in do. */
async function room({ config, queues }: Fleet): Promise<void> {
  let told = false;
  while ((await publicBacklog(queues)) >= config.intake.backlog) {
    if (!told)
      say(`The backlog is full (intake.backlog ${number(config.intake.backlog)}); waiting for workers …`);
    told = true;
    await new Promise((resolve) => setTimeout(resolve, fullWaitMs));
  }
}

function report({ submitted, underWay, settled, batches }: Submission, json: boolean): void {
  if (json) {
    printJson({ submitted, known: underWay, settled, batches: [...batches] });
    return;
  }
  const [batch, ...others] = batches;
  const where =
    others.length === 0
      ? `to batch ${batch}`
      : `to ${counted(batches.size, 'batch').replace(/chs$/, 'ches')}`;
  print(`Submitted ${counted(submitted, 'scrape')} ${where}.`);
  if (underWay > 0) print(`${counted(underWay, 'scrape')} known already and not submitted again.`);
  if (settled > 0) print(`${counted(settled, 'scrape')} settled already and not done again.`);
}
