import type { Command } from 'commander';
import { TrawlError } from '../errors.js';
import { batchExists, listBatches, queueCounts, readBatch, serverOverviews } from '../queue/status.js';
import { type Fleet, hasWorker, withFleet } from './fleet.js';
import { locate } from './locate.js';
import {
  batchArgument,
  type CommonOptions,
  quietLogger,
  readConfig,
  withExamples,
  withJsonOption,
} from './options.js';
import { outColors, print, printJson } from './output.js';
import { batchJson, batchLines } from './status/batch.js';
import { overviewLines } from './status/overview.js';
import { scrapeLines } from './status/scrape.js';

interface StatusOptions extends CommonOptions {
  readonly batch?: string;
}

/** Adds `trawl status`: everything at a glance, one batch, or one scrape. */
export function registerStatus(program: Command): void {
  const command = program
    .command('status')
    .description('show servers, queues and batches; with ID one scrape, with --batch one batch')
    .argument('[id]', 'a scrape, as BATCH.ID, or as ID when only one batch has it')
    .option('--batch <name>', 'the batch, or the batch that ID is in', batchArgument)
    .action(async (id: string | undefined, _options: StatusOptions, self: Command) => {
      const options = self.optsWithGlobals<StatusOptions>();
      const { config, log } = readConfig(options, quietLogger);
      await withFleet(config, log, (fleet) => status(fleet, id, options));
    });
  withJsonOption(command);
  withExamples(
    command,
    'trawl status',
    'trawl status --batch leads',
    'trawl status leads.plumbers-austin',
    "trawl status --batch leads --json | jq '.outcomes'",
  );
}

async function status(fleet: Fleet, id: string | undefined, { batch, json }: StatusOptions): Promise<void> {
  const now = Date.now();
  if (id !== undefined) {
    const found = await locate(fleet, id, batch);
    if (json) printJson(found);
    else for (const line of scrapeLines(found, now, outColors())) print(line);
  } else if (batch !== undefined) {
    const found = await readBatch(fleet.redis, fleet.keys, batch);
    if (found === null) throw await noBatch(fleet, batch);
    if (json) printJson(batchJson(found, now));
    else for (const line of batchLines(found, now, outColors())) print(line);
  } else {
    const overview = await readOverview(fleet);
    if (json) printJson(overview);
    else for (const line of overviewLines(overview, now, outColors())) print(line);
  }
}

/** What `status` without arguments and `watch` show. */
export async function readOverview(fleet: Fleet) {
  const [worker, servers, queues, batches] = await Promise.all([
    hasWorker(fleet),
    serverOverviews(fleet, fleet.config.servers),
    queueCounts(fleet.queues),
    listBatches(fleet.redis, fleet.keys),
  ]);
  return { worker, servers, queues, batches };
}

export type Overview = Awaited<ReturnType<typeof readOverview>>;

async function noBatch(fleet: Fleet, batch: string): Promise<TrawlError> {
  const waits = await batchExists(fleet.redis, fleet.keys, batch);
  return waits
    ? new TrawlError('scrape_unknown', `Batch ${batch} was submitted, and no worker has looked at it yet.`, {
        hint: 'Start a worker: trawl work',
      })
    : new TrawlError('scrape_unknown', `No batch "${batch}" is known.`, {
        hint: 'trawl status lists the batches. What was settled long ago is in the results directory alone.',
      });
}
