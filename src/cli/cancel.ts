import type { Command } from 'commander';
import { TrawlError } from '../errors.js';
import { cancelBatch, cancelScrape } from '../queue/cancel.js';
import { batchExists } from '../queue/status.js';
import { jobKey } from '../scrape/identity.js';
import { cancelDeps, type Fleet, hasWorker, withFleet } from './fleet.js';
import { counted, number } from './format.js';
import { locate } from './locate.js';
import {
  batchArgument,
  type CommonOptions,
  quietLogger,
  readConfig,
  withConfigOption,
  withExamples,
} from './options.js';
import { print, say } from './output.js';

interface CancelOptions extends CommonOptions {
  readonly batch?: string;
}

const progressEvery = 1_000;

/** Adds `trawl cancel`: one scrape, or all of a batch. */
export function registerCancel(program: Command): void {
  const command = program
    .command('cancel')
    .description(
      'cancel a scrape, or with --batch alone all that is open of a batch; runs under way are aborted',
    )
    .argument('[id]', 'a scrape, as BATCH.ID, or as ID when only one batch has it')
    .option('--batch <name>', 'the batch, or the batch that ID is in', batchArgument)
    .action(async (id: string | undefined, _options: CancelOptions, self: Command) => {
      const options = self.optsWithGlobals<CancelOptions>();
      const { config, log } = readConfig(options, quietLogger);
      if (id === undefined && options.batch === undefined) {
        throw new TrawlError(
          'usage_invalid',
          'Expected the ID of a scrape, or --batch NAME for all of a batch.',
        );
      }
      await withFleet(config, log, async (fleet) => {
        if (id !== undefined) await cancelOne(fleet, id, options.batch);
        else await cancelAll(fleet, options.batch as string);
      });
    });
  withConfigOption(command);
  withExamples(
    command,
    'trawl cancel leads.plumbers-austin',
    'trawl cancel --batch leads',
    '',
    'Pages that were written stay. What was not started is never started and costs nothing.',
  );
}

async function cancelOne(fleet: Fleet, id: string, batch: string | undefined): Promise<void> {
  const found = await locate(fleet, id, batch);
  if (found.outcome !== null) {
    print(`${found.key} is settled already (${found.outcome.outcome}); there is nothing to cancel.`);
    return;
  }
  const cancelled = await cancelScrape(cancelDeps(fleet), jobKey(found.batch, found.id));
  switch (cancelled) {
    case 'cancelling':
      print(`Cancelling ${found.key}${found.attempt?.runId ? '; its run is aborted' : ''}.`);
      break;
    case 'settled':
      print(`${found.key} was settled a moment ago; there is nothing to cancel.`);
      break;
    case 'unknown':
      throw new TrawlError('scrape_unknown', `${found.key} is gone from the queue.`);
    default:
      cancelled satisfies never;
  }
  await tellWithoutWorker(fleet);
}

async function cancelAll(fleet: Fleet, batch: string): Promise<void> {
  if (!(await batchExists(fleet.redis, fleet.keys, batch))) {
    throw new TrawlError('scrape_unknown', `No batch "${batch}" is known.`, {
      hint: 'trawl status lists the batches.',
    });
  }
  const reached = await cancelBatch(cancelDeps(fleet), batch, Date.now(), (count) => {
    if (count % progressEvery === 0) say(`${number(count)} reached …`);
  });
  print(`Cancelling batch ${batch}: ${counted(reached, 'scrape')} reached; runs under way are aborted.`);
  await tellWithoutWorker(fleet);
}

async function tellWithoutWorker(fleet: Fleet): Promise<void> {
  if (!(await hasWorker(fleet))) say('No worker is running: it takes hold when one does (trawl work).');
}
