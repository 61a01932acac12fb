import type { Command } from 'commander';
import { TrawlError } from '../errors.js';
import { retryScrape } from '../queue/retry.js';
import { type Fleet, hasWorker, withFleet } from './fleet.js';
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

interface RetryOptions extends CommonOptions {
  readonly batch?: string;
}

/** Adds `trawl retry`: the next attempt of a failed scrape. */
export function registerRetry(program: Command): void {
  const command = program
    .command('retry')
    .description('try a failed scrape again: its next attempt; earlier results move to .attempts')
    .argument('<id>', 'a scrape, as BATCH.ID, or as ID when only one batch has it')
    .option('--batch <name>', 'the batch that ID is in', batchArgument)
    .action(async (id: string, _options: RetryOptions, self: Command) => {
      const options = self.optsWithGlobals<RetryOptions>();
      const { config, log } = readConfig(options, quietLogger);
      await withFleet(config, log, (fleet) => retry(fleet, id, options.batch));
    });
  withConfigOption(command);
  withExamples(
    command,
    'trawl retry leads.plumbers-austin',
    'trawl retry plumbers-austin --batch leads',
    '',
    'A scrape that did not fail keeps its outcome, and nothing is paid for again.',
  );
}

async function retry(fleet: Fleet, id: string, batch: string | undefined): Promise<void> {
  const scrape = await locate(fleet, id, batch);
  const { key, outcome } = scrape;
  const retried = await retryScrape(fleet.queues, scrape);
  switch (retried.result) {
    case 'retrying':
      print(`Trying ${key} again: attempt ${retried.attempt}.`);
      if (!(await hasWorker(fleet))) say('No worker is running. Start one: trawl work');
      return;
    case 'settled':
      print(
        `${key} is settled as ${outcome?.outcome ?? 'completed'}: it keeps its outcome, and nothing is paid for again.`,
      );
      return;
    case 'forgotten':
      throw new TrawlError(
        'scrape_unknown',
        `Redis has forgotten ${key} (${outcome?.outcome ?? 'no outcome'}).`,
        {
          hint: 'Submit its job again under another id or batch.',
        },
      );
    case 'under_way':
      print(`${key} is under way; there is nothing to try again.`);
      return;
    default:
      retried satisfies never;
  }
}
