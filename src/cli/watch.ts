import type { Command } from 'commander';
import { createRedis, resolveRedis } from '../redis/connection.js';
import { cleanText } from '../scrape/clean-text.js';
import { type Fleet, withFleet } from './fleet.js';
import { clock, number } from './format.js';
import {
  type CommonOptions,
  durationArgument,
  quietLogger,
  readConfig,
  withExamples,
  withJsonOption,
} from './options.js';
import { outColors, print, printJson } from './output.js';
import { endOfEvents, eventOf, pause } from './run/follow.js';
import { Signals } from './signals.js';
import { overviewLines } from './status/overview.js';
import { type Overview, readOverview } from './status.js';

interface WatchOptions extends CommonOptions {
  readonly interval?: number;
}

const terminalEveryMs = 1_000;
const plainEveryMs = 10_000;
const blockMs = 1_000;

/** Adds `trawl watch`: what `status` shows, again and again. */
export function registerWatch(program: Command): void {
  const command = program
    .command('watch')
    .description(
      'show servers, queues and batches as they change, until Ctrl-C; a line at a time without a terminal',
    )
    .option(
      '--interval <duration>',
      'time between looks (default: 1s on a terminal, else 10s)',
      durationArgument,
    )
    .action(async (_options: WatchOptions, self: Command) => {
      await watch(self.optsWithGlobals<WatchOptions>());
    });
  withJsonOption(command, 'print events as they happen, one JSON document a line');
  withExamples(
    command,
    'trawl watch',
    'trawl watch --json | jq -c \'select(.type == "scrape.settled") | [.batch, .id, .data.outcome]\'',
  );
}

async function watch(options: WatchOptions): Promise<void> {
  const { config, log } = readConfig(options, quietLogger);
  const signals = new Signals();
  const stop = new AbortController();
  void signals.first.then(() => stop.abort());
  try {
    if (options.json) {
      const resolved = await resolveRedis(config, { cwd: process.cwd(), env: process.env, log });
      const blocking = createRedis(resolved.target, { role: 'worker', log, name: 'trawl-watch' });
      stop.signal.addEventListener('abort', () => blocking.disconnect());
      try {
        await withFleet(config, log, (fleet) => printEvents(fleet, blocking, stop.signal));
      } finally {
        blocking.disconnect();
        await resolved.release();
      }
    } else {
      await withFleet(config, log, (fleet) => showOverviews(fleet, options.interval, stop.signal));
    }
  } finally {
    signals.close();
  }
}

async function showOverviews(fleet: Fleet, interval: number | undefined, stop: AbortSignal): Promise<void> {
  const terminal = process.stdout.isTTY === true;
  const everyMs = interval ?? (terminal ? terminalEveryMs : plainEveryMs);
  while (!stop.aborted) {
    const overview = await readOverview(fleet);
    const now = Date.now();
    if (terminal) redraw(overviewLines(overview, now, outColors()));
    else print(overviewLine(overview, now));
    await pause(everyMs, stop);
  }
}

/** From the top of the screen, as much as fits; what was there is written over, so that nothing flickers. */
function redraw(lines: readonly string[]): void {
  const fitting = lines.slice(0, Math.max(1, (process.stdout.rows ?? 24) - 1));
  process.stdout.write(`\u001b[H${fitting.map((line) => `${line}\u001b[K\n`).join('')}\u001b[J`);
}

/** One line for logs: what is under way, what waits, how the newest batch goes. */
function overviewLine({ servers, batches, worker }: Overview, now: number): string {
  const parts = servers.map(
    (server) =>
      `${server.name} ${server.runsInFlight}/${server.runSlots} runs, ${number(server.waiting)} waiting` +
      (server.state.hold === null ? '' : `, held (${server.state.hold.reason})`) +
      (server.state.pausedSince === null ? '' : ', paused'),
  );
  const [newest] = batches;
  if (newest !== undefined) {
    parts.push(`batch ${newest.batch} ${number(newest.settled)}/${number(newest.submitted)} settled`);
  }
  if (!worker) parts.push('no worker');
  return `${clock(now)} ${parts.join('; ')}`;
}

async function printEvents(
  fleet: Fleet,
  blocking: ReturnType<typeof createRedis>,
  stop: AbortSignal,
): Promise<void> {
  let position = await endOfEvents(fleet.redis, fleet.keys);
  while (!stop.aborted) {
    try {
      const reply = await blocking.xread(
        'COUNT',
        1_000,
        'BLOCK',
        blockMs,
        'STREAMS',
        fleet.keys.events,
        position,
      );
      for (const [id, fields] of reply?.[0]?.[1] ?? []) {
        position = id;
        printJson({ at: Number(id.split('-')[0]), ...readable(fields) }, 'line');
      }
    } catch (error) {
      if (!stop.aborted) throw error;
    }
  }
}

function readable(fields: readonly string[]): Record<string, unknown> {
  const { type, id, batch, data } = eventOf(fields);
  return { type: cleanText(type, 60), id: id ?? '', batch: batch ?? '', data: parsed(data) };
}

function parsed(data: string | undefined): unknown {
  try {
    return JSON.parse(data ?? 'null');
  } catch {
    return data;
  }
}
