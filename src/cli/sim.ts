import type { Command } from 'commander';
import { type Sim, startSim } from '../../test/sim/index.js';
import { TrawlError } from '../errors.js';

/** Options of `trawl sim` as commander hands them over. */
export interface SimCommandOptions {
  readonly port?: string;
  readonly host?: string;
  readonly speed?: string;
  readonly seed?: string;
  readonly mix?: string;
}

const mixes = ['good-night', 'bad-night', 'fixed'] as const;

/** Adds `trawl sim`: the simulated Apify MCP server, for trying Trawl out without an account. */
export function registerSim(program: Command): void {
  program
    .command('sim')
    .description('run a simulated Apify MCP server: nothing is scraped and nothing is paid for')
    .option('--port <number>', 'port to listen on', '8931')
    .option('--host <address>', 'address to bind', '127.0.0.1')
    .option('--speed <factor>', 'how much faster than life runs go', '10')
    .option('--seed <number>', 'the same seed gives the same runs', '1')
    .option('--mix <name>', `how runs end: ${mixes.join(', ')}`, 'good-night')
    .action(async (options: SimCommandOptions) => {
      await runSim(options);
    });
}

/**
 * Runs the simulator until SIGINT or SIGTERM.
 * @throws TrawlError usage_invalid on a bad option or a port that cannot be had
 */
export async function runSim(options: SimCommandOptions): Promise<void> {
  const sim = await startSimFromOptions(options);
  process.stdout.write(greeting(sim, options));
  await new Promise<void>((resolve) => {
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => resolve());
  });
  const { starts, inFlight } = sim.stats();
  await sim.close();
  process.stderr.write(`Simulator stopped: ${starts} runs started, ${inFlight} of them still under way.\n`);
}

/**
 * Starts the simulator with the command's options.
 * @throws TrawlError usage_invalid
 */
export async function startSimFromOptions(options: SimCommandOptions): Promise<Sim> {
  const mix = mixes.find((name) => name === (options.mix ?? 'good-night'));
  if (mix === undefined) {
    throw new TrawlError('usage_invalid', `--mix: expected one of ${mixes.join(', ')}, got "${options.mix}"`);
  }
  const port = numberOption('--port', options.port ?? '8931', 0, 65_535, true);
  try {
    return await startSim({
      port,
      host: options.host ?? '127.0.0.1',
      speed: numberOption('--speed', options.speed ?? '10', 0.01, 10_000, false),
      seed: numberOption('--seed', options.seed ?? '1', 0, 2 ** 32 - 1, true),
      // Run ids go on from the clock, so that a restarted simulator never gives an id out twice.
      firstRun: Date.now(),
      conditions: { mix },
    });
  } catch (error) {
    if (error instanceof TrawlError) throw error;
    const reason = error instanceof Error ? error.message : String(error);
    throw new TrawlError('usage_invalid', `The simulator cannot listen on port ${port}: ${reason}`, {
      hint: 'Choose another one with --port, or 0 for a free one.',
      cause: error,
    });
  }
}

function numberOption(name: string, text: string, low: number, high: number, whole: boolean): number {
  const value = text.trim() === '' ? Number.NaN : Number(text);
  if (!Number.isFinite(value) || value < low || value > high || (whole && !Number.isInteger(value))) {
    const kind = whole ? 'a whole number' : 'a number';
    throw new TrawlError('usage_invalid', `${name}: expected ${kind} from ${low} to ${high}, got "${text}"`);
  }
  return value;
}

function greeting(sim: Sim, options: SimCommandOptions): string {
  return `Simulated Apify MCP server on ${sim.url} (speed ${options.speed ?? '10'}, seed ${options.seed ?? '1'}). Any token will do.

Point trawl.yaml at it:

  servers:
    apify:
      url: ${sim.url}
      token: simulated
      tools:
        - compass/crawler-google-places
        - trudax/yellow-pages-us-scraper

Look inside: curl ${sim.url}sim/stats   Stop: Ctrl-C
`;
}
