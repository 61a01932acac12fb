import { number, span } from '../format.js';
import { type Colors, table } from '../output.js';
import { obstacles } from '../run/progress.js';
import type { Overview } from '../status.js';
import { batchProblems, timeLeft } from './batch.js';

const shownBatches = 15;

export function overviewLines(overview: Overview, now: number, colors: Colors): string[] {
  const { servers, queues, batches, worker } = overview;
  const right = 'right' as const;
  const lines = [
    ...head(
      table(
        [
          { title: 'SERVER' },
          { title: 'STATE' },
          { title: 'RUNS', align: right },
          { title: 'SLOTS', align: right },
          { title: 'WAITING', align: right },
          { title: 'SET ASIDE', align: right },
        ],
        servers.map((server) => [
          server.name,
          stateOf(server, now),
          number(server.runsInFlight),
          number(server.runSlots),
          number(server.waiting),
          number(server.parked),
        ]),
      ),
      colors,
    ),
    ...servers.flatMap((server) => obstacles(server, now)).map((text) => colors.yellow(`  ${text}`)),
    '',
    ...head(
      table(
        [
          { title: 'QUEUE' },
          { title: 'WAITING', align: right },
          { title: 'ACTIVE', align: right },
          { title: 'DELAYED', align: right },
          { title: 'UNDER WAY', align: right },
        ],
        queues.map((queue) => [
          queue.name,
          number(queue.waiting + queue.prioritized),
          number(queue.active),
          number(queue.delayed),
          number(queue['waiting-children']),
        ]),
      ),
      colors,
    ),
    '',
    ...batchTable(batches, now, colors),
  ];
  if (!worker) lines.push('', colors.yellow('No worker is running. Start one: trawl work'));
  return lines;
}

function batchTable(batches: Overview['batches'], now: number, colors: Colors): string[] {
  if (batches.length === 0) return ['No batches yet.'];
  const right = 'right' as const;
  const rows = batches.slice(0, shownBatches).map((batch) => {
    const left = timeLeft(batch, now);
    return [
      batch.batch,
      number(batch.settled),
      number(batch.submitted),
      number(batch.items),
      batchProblems(batch),
      left === null ? '' : `about ${span(left)}`,
    ];
  });
  const lines = head(
    table(
      [
        { title: 'BATCH' },
        { title: 'SETTLED', align: right },
        { title: 'OF', align: right },
        { title: 'ITEMS', align: right },
        { title: 'PROBLEMS' },
        { title: 'LEFT' },
      ],
      rows,
    ),
    colors,
  );
  const more = batches.length - rows.length;
  return more > 0 ? [...lines, `and ${number(more)} older ones`] : lines;
}

function head([first = '', ...rest]: readonly string[], colors: Colors): string[] {
  return [colors.bold(first), ...rest];
}

function stateOf({ state }: Overview['servers'][number], now: number): string {
  if (state.pausedSince !== null) return 'paused';
  if (state.hold !== null) return `held (${state.hold.reason})`;
  if (state.coolUntil !== null && state.coolUntil > now) return 'cooling down';
  return 'ok';
}
