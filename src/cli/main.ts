import { Command } from 'commander';
import { version } from '../version.js';
import { endQuietlyWithoutReader } from './output.js';
import { reportError } from './report.js';

/**
 * Commands in the order of the help. Only the one that is asked for is loaded, the help aside: all of them together take
 * three times as long as most.
 */
const commands: Readonly<Record<string, () => Promise<(program: Command) => void>>> = {
  run: async () => (await import('./run.js')).registerRun,
  work: async () => (await import('./work.js')).registerWork,
  submit: async () => (await import('./submit.js')).registerSubmit,
  plan: async () => (await import('./plan.js')).registerPlan,
  status: async () => (await import('./status.js')).registerStatus,
  watch: async () => (await import('./watch.js')).registerWatch,
  cancel: async () => (await import('./cancel.js')).registerCancel,
  retry: async () => (await import('./retry.js')).registerRetry,
  pause: async () => (await import('./pause.js')).registerPause,
  resume: async () => (await import('./pause.js')).registerResume,
  'log-level': async () => (await import('./log-level.js')).registerLogLevel,
  export: async () => (await import('./export.js')).registerExport,
  tools: async () => (await import('./tools.js')).registerTools,
  doctor: async () => (await import('./doctor.js')).registerDoctor,
  sim: async () => (await import('./sim.js')).registerSim,
};

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
    const program = await createProgram(commandOf(args));
    await program.parseAsync([...args], { from: 'user' });
    return Number(process.exitCode ?? 0);
  } catch (error) {
    return reportError(error, debug);
  } finally {
    process.exitCode = before;
  }
}

/** @param only the one command that is needed; null: all */
export async function createProgram(only: string | null = null): Promise<Command> {
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
  for (const name of only === null ? Object.keys(commands) : [only]) {
    const register = await commands[name]?.();
    register?.(program);
  }
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

/** The command that the arguments name; null when there is none, or none of that name. */
function commandOf(args: readonly string[]): string | null {
  for (let index = 0; index < args.length; index += 1) {
    const argument = args[index] as string;
    if (argument === '--config') index += 1;
    else if (!argument.startsWith('-')) return Object.hasOwn(commands, argument) ? argument : null;
  }
  return null;
}
