import type { Command } from 'commander';
import type { Config } from '../config.js';
import { ExitCode } from '../errors.js';
import type { Logger } from '../logger.js';
import type { KnownDeps } from '../queue/known.js';
import { createFileSink } from '../sinks/file.js';
import { redisRuns, withFleet } from './fleet.js';
import { counted, number } from './format.js';
import { type CheckedJobs, Conflicts, checkJobs, lookUpAll } from './jobs.js';
import {
  batchArgument,
  type CommonOptions,
  quietLogger,
  readConfig,
  withExamples,
  withJsonOption,
} from './options.js';
import { print, printJson, say } from './output.js';
import { Estimate } from './plan/estimate.js';
import { readHistory } from './plan/history.js';
import { costLine, timeLines, toolTable } from './plan/text.js';

interface PlanOptions extends CommonOptions {
  readonly batch?: string;
}

interface Plan {
  readonly estimate: Estimate;
  readonly settled: number;
  readonly underWay: number;
  readonly waiting: number;
  readonly conflicts: Conflicts;
}

/** Adds `trawl plan`: what a file would cost and how long it would take. */
export function registerPlan(program: Command): void {
  const command = program
    .command('plan')
    .description('say what FILE would cost and how long it would take; starts nothing and spends nothing')
    .argument('<file>', 'jobs, one JSON document a line; - for stdin')
    .option('--batch <name>', 'as in run', batchArgument)
    .action(async (file: string, _options: PlanOptions, self: Command) => {
      await plan(file, self.optsWithGlobals<PlanOptions>());
    });
  withJsonOption(command);
  withExamples(
    command,
    'trawl plan leads.ndjson',
    "trawl plan leads.ndjson --json | jq '.cost.usd'",
    '',
    'The cost comes from price in trawl.yaml, else from past runs in the results directory, else from maxTotalChargeUsd.',
    'Scrapes that are settled or under way are left out. Bad lines are listed, and the exit code is 2.',
  );
}

async function plan(file: string, options: PlanOptions): Promise<void> {
  const { config, log } = readConfig(options, quietLogger);
  const jobs = await checkJobs(file, config, options.batch);
  try {
    const found = await withKnowledge(config, log, (deps) => makePlan(jobs, config, deps));
    found.conflicts.throwIfAny(jobs.label);
    if (options.json) printJson(planJson(jobs, found));
    else printPlan(jobs, found, config);
  } finally {
    await jobs.close();
  }
}

/** Redis is asked when it is there; without it the results on disk tell what is settled. */
async function withKnowledge<T>(
  config: Config,
  log: Logger,
  use: (deps: KnownDeps) => Promise<T>,
): Promise<T> {
  const sink = createFileSink({ dir: config.results.dir, gzip: config.results.gzip });
  if (!(await redisRuns(config))) return use({ redis: null, sink });
  try {
    return await withFleet(config, log, ({ redis, keys }) => use({ redis: { client: redis, keys }, sink }));
  } catch (error) {
    if ((error as { code?: unknown }).code !== 'redis_unreachable') throw error;
    say('Redis cannot be reached: what is settled is taken from the results directory alone.');
    return use({ redis: null, sink });
  }
}

/** Reads all of the file; nothing is changed. */
async function makePlan(jobs: CheckedJobs, config: Config, deps: KnownDeps): Promise<Plan> {
  const estimate = new Estimate(config, await readHistory(config.results.dir));
  const conflicts = new Conflicts();
  const counts = { settled: 0, underWay: 0, waiting: 0 };
  for await (const { scrape, key, known } of lookUpAll(jobs, deps)) {
    switch (known.state) {
      case 'fresh':
        estimate.add(scrape);
        break;
      case 'waiting':
        counts.waiting += 1;
        estimate.add(scrape);
        break;
      case 'under_way':
        counts.underWay += 1;
        break;
      case 'settled':
        counts.settled += 1;
        break;
      case 'conflict':
        conflicts.add(key);
        break;
      default:
        known satisfies never;
    }
  }
  return { estimate, conflicts, ...counts };
}

function printPlan(jobs: CheckedJobs, { estimate, settled, underWay, waiting }: Plan, config: Config): void {
  const limits = (server: string) => {
    const own = config.servers[server]?.limits;
    return { runs: own?.runs ?? 0, rps: own?.requestsPerSecond ?? 0 };
  };
  print(`${jobs.label}: ${counted(jobs.report.scrapes, 'scrape')}, batch ${jobs.batch}`);
  if (jobs.report.duplicates > 0)
    print(`${number(jobs.report.duplicates)} lines repeat earlier ones and are left out`);
  print();
  if (estimate.tools.length > 0) for (const line of [...toolTable(estimate.tools), '']) print(line);
  const rows: [string, string][] = [
    ['settled already', `${number(settled)} (not done again)`],
    ['under way', number(underWay)],
    ['waiting', number(waiting)],
    ['cost', costLine(estimate)],
    ...timeLines(estimate, limits).map((line): [string, string] => ['time', line]),
  ];
  for (const [name, text] of rows) print(`${name.padEnd(16)} ${text}`);
}

function planJson(jobs: CheckedJobs, { estimate, settled, underWay, waiting }: Plan): unknown {
  return {
    file: jobs.label,
    batch: jobs.batch,
    scrapes: jobs.report.scrapes,
    duplicates: jobs.report.duplicates,
    settled,
    underWay,
    waiting,
    cost: { usd: estimate.usd, unknownScrapes: estimate.unknownCost, itemsOnTop: estimate.openCost },
    calls: estimate.tools.reduce((sum, tool) => sum + tool.calls, 0),
    hours: estimate.servers[0]?.hours ?? 0,
    assumedDurations: estimate.assumesDurations,
    servers: estimate.servers,
    tools: estimate.tools.map(({ bases, ...tool }) => ({ ...tool, bases: [...bases] })),
    exitCode: ExitCode.ok,
  };
}
