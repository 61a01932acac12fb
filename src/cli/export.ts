import type { Command } from 'commander';
import { runExport } from '../sinks/export.js';
import { counted } from './format.js';
import {
  batchArgument,
  type CommonOptions,
  quietLogger,
  readConfig,
  withConfigOption,
  withExamples,
} from './options.js';
import { say } from './output.js';

interface ExportOptions extends CommonOptions {
  readonly batch: string;
  readonly out?: string;
}

/** Adds `trawl export`: the items of a batch as one stream. */
export function registerExport(program: Command): void {
  const command = program
    .command('export')
    .description('write the items of the settled scrapes of a batch as one NDJSON stream')
    .requiredOption('--batch <name>', 'the batch', batchArgument)
    .option('--out <file>', 'write to a file, which appears once it is whole (default: stdout)')
    .action(async (_options: ExportOptions, self: Command) => {
      const options = self.optsWithGlobals<ExportOptions>();
      const { config } = readConfig(options, quietLogger);
      const file = options.out ?? null;
      const done = await runExport({
        dir: config.results.dir,
        batch: options.batch,
        file,
        stdout: process.stdout,
      });
      if (file !== null)
        say(`${counted(done.items, 'item')} of ${counted(done.scrapes, 'scrape')} in ${file}`);
    });
  withConfigOption(command);
  withExamples(
    command,
    'trawl export --batch leads --out leads.ndjson',
    "trawl export --batch leads | jq -r '.title' | sort -u",
    '',
    'Scrapes come in the order of their ids, items in the order of their dataset. Redis is not needed.',
  );
}
