import { setTimeout as delay } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { rehearse } from './conduct.js';
import type { Incident } from './incident.js';
import { fleetIncidents } from './incidents-fleet.js';
import { serverIncidents } from './incidents-server.js';
import { type Asked, IncidentPanels } from './panels.js';
import { Stack } from './stack.js';
import { table } from './table.js';
import { type Row, strays } from './verdict.js';
import { nameOf } from './watch.js';

const all = [...serverIncidents, ...fleetIncidents];
const inShort = [
  'quiet-night',
  'few-scrapes',
  'runs-empty',
  'protocol-errors',
  'token-revoked',
  'workers-down',
];
const usual = { factor: 12, shortFactor: 20, seed: 1 };
/** So many servers at once. */
const together = 13;

const usage = `usage: npm run rehearse -- [--only NAME]... [--short] [--factor N] [--seed N] [--keep]

Rehearses incidents: real workers, a real Redis, Prometheus and Alertmanager with the rules and inhibition that are
shipped, and simulated servers. Each incident is really caused, then mended, and a table tells what fired, who was told,
and how long it took. Zero missed, zero false, one page an incident; else the exit code is 1 (2: usage, or it could not run).

  --only NAME   this incident alone; may be given again
  --short       ${inShort.length} of them, in less than four minutes
  --factor N    every window is N times shorter than shipped (default ${usual.factor}, with --short ${usual.shortFactor}), up to 30
  --seed N      of the simulated servers (default ${usual.seed})
  --keep        with --only: leave it broken once its alert is there, and everything running, until Ctrl-C

Incidents (those of one server or tool run together, each on a server of its own; the others one after another):
${all.map(({ name, expected, what }) => `  ${name.padEnd(18)}${(expected ?? 'no alert').padEnd(25)}${what}`).join('\n')}

Examples:
  npm run rehearse                                 everything: about half an hour
  npm run rehearse -- --short                      as CI does
  npm run rehearse -- --only runs-empty --keep     follow docs/runbooks/TrawlRunsEmpty.md against it
`;

class UsageError extends Error {}

function options() {
  const { values } = parseArgs({
    options: {
      only: { type: 'string', multiple: true, default: [] },
      short: { type: 'boolean', default: false },
      factor: { type: 'string' },
      seed: { type: 'string', default: String(usual.seed) },
      keep: { type: 'boolean', default: false },
      help: { type: 'boolean', short: 'h', default: false },
    },
  });
  const { only, short, seed, keep, help } = values;
  const factor = Number(values.factor ?? (short ? usual.shortFactor : usual.factor));
  if (!(factor >= 1 && factor <= 30))
    throw new UsageError(`--factor: expected 1 to 30, got ${values.factor}`);
  if (!/^\d{1,9}$/.test(seed)) throw new UsageError(`--seed: expected a whole number, got ${seed}`);
  const unknown = only.find((name) => all.every((each) => each.name !== name));
  if (unknown !== undefined)
    throw new UsageError(`--only: no incident ${unknown}; npm run rehearse -- --help lists them`);
  if (keep && only.length !== 1) throw new UsageError('--keep: name the one incident with --only');
  const chosen = only.length > 0 ? only : short ? inShort : all.map(({ name }) => name);
  return {
    help,
    keep,
    short,
    factor,
    seed: Number(seed),
    complete: only.length === 0 && !short,
    incidents: all.filter(({ name }) => chosen.includes(name)),
  };
}

const began = Date.now();
const say = (line: string) =>
  process.stderr.write(`${String(Math.round((Date.now() - began) / 1_000)).padStart(5)} s  ${line}\n`);

async function main(): Promise<number> {
  const { help, keep, short, factor, seed, complete, incidents } = options();
  if (help) {
    process.stdout.write(usage);
    return 0;
  }
  const windowFactor = 1 / factor;
  say(`${incidents.length} incidents, windows ${factor} times shorter`);
  // Two installations beside each other: what goes wrong under all servers would get in the way of the others.
  const acts = await Promise.all(
    [incidents.filter(({ scope }) => scope !== 'fleet'), incidents.filter(({ scope }) => scope === 'fleet')]
      .filter((act) => act.length > 0)
      .map((act, index) => playAct(act, { windowFactor, seed: seed + 100 * index, keep, short })),
  );
  const rows = acts.flatMap((act) => act.rows);
  const stray = acts.flatMap((act) => act.stray);
  const faults = [...rows.flatMap((row) => row.faults), ...stray];
  const minutes = ((Date.now() - began) / 60_000).toFixed(1);
  process.stdout.write(`${table(rows, windowFactor)}\n\n`);
  process.stdout.write('Times are seconds here and, in brackets, minutes of a real night.\n');
  if (stray.length > 0) process.stdout.write(`Told without an incident: ${stray.join(', ')}\n`);
  if (complete) {
    const asked = bestOf(acts.map(({ panels }) => panels));
    process.stdout.write(
      '\nQueries of panels that have data only on an incident, and the first that gave them some:\n',
    );
    for (const { panel, expr, seenIn } of asked) {
      process.stdout.write(`${panel.padEnd(70)} ${seenIn ?? 'NO DATA'}\n`);
      if (seenIn === null) faults.push(`no data: ${panel}: ${expr}`);
    }
  }
  const verdict =
    faults.length === 0 ? 'none missed, none false, one page an incident' : `${faults.length} faults`;
  process.stdout.write(`\n${rows.length} rehearsed in ${minutes} min: ${verdict}.\n`);
  for (const { stack } of acts) {
    await stack.stop();
    if (faults.length === 0) stack.removeFiles();
    else say(`logs of the workers: ${stack.dir}`);
  }
  return faults.length === 0 ? 0 : 1;
}

interface Act {
  readonly stack: Stack;
  readonly rows: readonly Row[];
  readonly stray: readonly string[];
  readonly panels: readonly Asked[];
}

async function playAct(
  incidents: readonly Incident[],
  { windowFactor, seed, keep, short }: { windowFactor: number; seed: number; keep: boolean; short: boolean },
): Promise<Act> {
  const stack = await Stack.start({
    incidents,
    windowFactor,
    seed,
    onAlert: ({ labels, until }) => {
      const who = [labels.server, labels.objective, labels.reason, labels.instance].filter(Boolean).join(' ');
      say(`${until === null ? 'fires' : 'ends'}: ${nameOf(labels)} ${who}`);
    },
  });
  const underWay = new Set<string>();
  const panels = new IncidentPanels(stack.prometheus, () => [...underWay]);
  const conductor = {
    stack,
    short,
    say,
    atItsHeight: (incident: Incident) => (keep ? hold(incident, stack) : Promise.resolve()),
  };
  const play = async (incident: Incident): Promise<Row> => {
    underWay.add(incident.name);
    try {
      return await rehearse(incident, conductor);
    } finally {
      underWay.delete(incident.name);
    }
  };
  const since = Date.now();
  const rows: Row[] = [];
  // Prometheus has to have seen the zeros before the first scrape ends.
  await delay(5_000);
  const abreast = incidents.some(({ scope }) => scope === 'fleet') ? 1 : together;
  for (let at = 0; at < incidents.length; at += abreast) {
    rows.push(...(await Promise.all(incidents.slice(at, at + abreast).map(play))));
  }
  await panels.stop();
  return { stack, rows, stray: strays(rows, stack, since), panels: panels.asked };
}

/** Each query as it was answered where it had data. */
function bestOf(asked: readonly (readonly Asked[])[]): Asked[] {
  const [first = [], ...others] = asked;
  return first.map(
    (each, index) => [each, ...others.map((other) => other[index])].find((one) => one?.seenIn) ?? each,
  );
}

/** Until Ctrl-C. */
async function hold(incident: Incident, stack: Stack): Promise<void> {
  process.stdout.write(`
${incident.name} goes on until Ctrl-C, which mends it. The alert says:

${stack.told(incident)}

trawl.yaml    ${stack.config}   (trawl status --config …)
Prometheus    ${stack.prometheus.url}
Alertmanager  http://${stack.alertmanager.address}
Logs          ${stack.dir}/worker-*.log
`);
  await new Promise<void>((resolve) => {
    interrupt = resolve;
  });
}

// The first one mends what is kept; without that, or the second time, it ends everything.
let interrupt: (() => void) | null = null;
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.on(signal, () => {
    const resolve = interrupt;
    interrupt = null;
    if (resolve === null) process.exit(130);
    resolve();
  });
}

main().then(
  (code) => process.exit(code),
  (error: unknown) => {
    process.stderr.write(
      `${error instanceof UsageError ? error.message : error instanceof Error ? error.stack : String(error)}\n`,
    );
    process.exit(2);
  },
);
