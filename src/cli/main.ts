import { Command } from 'commander';
import { version } from '../version.js';
import { registerCancel } from './cancel.js';
import { registerDoctor } from './doctor.js';
import { registerExport } from './export.js';
import { endQuietlyWithoutReader } from './output.js';
import { registerPause } from './pause.js';
import { registerPlan } from './plan.js';
import { reportError } from './report.js';
import { registerRetry } from './retry.js';
import { registerRun } from './run.js';
import { registerSim } from './sim.js';
import { registerStatus } from './status.js';
import { registerSubmit } from './submit.js';
import { registerTools } from './tools.js';
import { registerWatch } from './watch.js';
import { registerWork } from './work.js';

/** After a command has answered, what it left open has this long to end by itself. */
const lingerMs = 1_000;

/** `trawl` as a process: runs the command and ends with its exit code. */
export async function runProcess(args: readonly string[]): Promise<void> {
  endQuietlyWithoutReader();
  process.exitCode = await main(args);
  setTimeout(() => process.exit(), lingerMs).unref();
}

/** Runs one command line (without `node` and the script) and returns the exit code. */
export async function main(args: readonly string[]): Promise<number> {
  // Not an override of the configuration, as everything else that begins with TRAWL_ is.
  const debug = Boolean(process.env.TRAWL_DEBUG);
  delete process.env.TRAWL_DEBUG;
  const before = process.exitCode;
  process.exitCode = undefined;
  try {
    await createProgram().parseAsync([...args], { from: 'user' });
    return Number(process.exitCode ?? 0);
  } catch (error) {
    return reportError(error, debug);
  } finally {
    process.exitCode = before;
  }
}

export function createProgram(): Command {
  const program = new Command('trawl')
    .description(
      'Batch scraping through remote MCP servers: jobs go in, runs are watched to their end, items lie on disk.',
    )
    .version(version)
    .option('--config <file>', 'configuration file (default: trawl.yaml)')
    .configureOutput({ outputError: (text, write) => write(text.replace(/^error: /, 'trawl: ')) })
    .showHelpAfterError('(trawl --help, or trawl COMMAND --help, shows what can be said)')
    .exitOverride();
  // Everything that is set above is taken over by the commands, so they come after it.
  registerRun(program);
  registerWork(program);
  registerSubmit(program);
  registerPlan(program);
  registerStatus(program);
  registerWatch(program);
  registerCancel(program);
  registerRetry(program);
  registerPause(program);
  registerExport(program);
  registerTools(program);
  registerDoctor(program);
  registerSim(program);
  program.addHelpText(
    'after',
    `
Begin with:
  trawl doctor                 is everything there?
  trawl plan jobs.ndjson       what would it cost?
  trawl run jobs.ndjson        do it, watch it, and see where the results are

Exit codes:
  0  all succeeded             1  at least one failure
  2  usage or configuration    3  only warnings
  4  interrupted or Redis lost: run it again to resume`,
  );
  return program;
}
