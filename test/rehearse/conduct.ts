import { setTimeout as delay } from 'node:timers/promises';
import { hours, minutes } from '../../grafana/src/scale.js';
import { type Incident, owns } from './incident.js';
import { type Stack, steady } from './stack.js';
import { type Row, rowOf } from './verdict.js';
import { nameOf } from './watch.js';
import type { Labels } from './webhook.js';

/** Seconds of a real night. */
const spans = {
  /** Of good work before anything happens: enough runs in the hour for the minimum volumes. */
  baseline: minutes(22),
  shortBaseline: minutes(12),
  shortAfter: (expected: string | null) => minutes(expected === null ? 40 : 6),
  /** Under all servers volumes do not matter. */
  fleetBaseline: minutes(5),
  fire: hours(1.5),
  resolve: hours(2.5),
  /** Looked at after the alert: what follows from the incident may take longer to fire. */
  after: minutes(20),
  /** Between two incidents under all servers. */
  calm: minutes(4),
};

export interface Conductor {
  /** Less time for what only has to be long on a full rehearsal. */
  readonly short: boolean;
  readonly stack: Stack;
  readonly say: (line: string) => void;
  /** Called while an incident is at its height, after its alert; resolves when it may be healed. */
  readonly atItsHeight: (incident: Incident) => Promise<void>;
}

/** Brings an incident about, waits for its alert, heals it, waits until it is resolved. */
export async function rehearse(incident: Incident, conductor: Conductor): Promise<Row> {
  const { stack, say, short } = conductor;
  const { name, expected, along = [] } = incident;
  const scene = stack.scene(name);
  const pause = (seconds: number) => delay(stack.ms(seconds));
  const from = Date.now();
  const mine = (labels: Labels) => owns(incident, labels);
  const told = (status: 'firing' | 'resolved', since: number) =>
    stack.watch
      .notified(since, mine)
      .find((each) =>
        each.alerts.some((alert) => alert.status === status && nameOf(alert.labels) === expected),
      );
  /** Tickets that come along stay for an hour of the night. */
  const waitedFor = (labels: Labels) => mine(labels) && !(short && along.includes(nameOf(labels)));
  const firing = () => stack.watch.fired(from, waitedFor).filter(({ until }) => until === null);

  await incident.before?.(scene);
  const everyMs = incident.everyMs === undefined ? 3_000 : incident.everyMs;
  if (everyMs !== null) scene.traffic.start(everyMs);
  if (incident.scope === 'fleet') {
    const { traffic } = stack.scene(steady);
    // Cheap: half an hour of it is a night, and a server may spend so much a day.
    traffic.steer({ runSecs: 1.5, items: 10, usageUsd: 0.01 });
    traffic.start(2_000);
  }
  const baseline = short ? spans.shortBaseline : spans.baseline;
  await pause(incident.scope === 'fleet' ? spans.fleetBaseline : baseline);
  const after = short ? spans.shortAfter(expected) : (incident.span ?? spans.after);

  say(`${name}: ${incident.what}`);
  const causedAt = Date.now();
  await incident.cause(scene);
  if (expected === null) {
    await pause(after);
  } else {
    if (!(await until(() => told('firing', causedAt) !== undefined, stack.ms(spans.fire))))
      say(`${name}: NOBODY WAS TOLD in ${Math.round((Date.now() - causedAt) / 1_000)} s`);
    await pause(after);
  }
  const silentQueries = expected === null ? [] : await stack.silentQueries(incident);
  await conductor.atItsHeight(incident);

  say(`${name}: mended`);
  const healedAt = Date.now();
  await incident.heal(scene);
  if (expected === null) {
    if (incident.scope === 'fleet') await pause(spans.calm);
  } else {
    const resolved = () =>
      (told('firing', causedAt) === undefined || told('resolved', healedAt) !== undefined) &&
      firing().length === 0;
    await until(resolved, stack.ms(spans.resolve));
    if (incident.scope === 'fleet') await pause(spans.calm);
  }
  scene.traffic.stop();
  const row = rowOf(incident, stack, {
    from,
    causedAt,
    healedAt,
    firedAt: told('firing', causedAt)?.at ?? null,
    resolvedAt: told('resolved', healedAt)?.at ?? null,
    silentQueries,
    stillFiring: firing().map(({ labels }) => nameOf(labels)),
  });
  say(`${name}: ${row.faults.length === 0 ? 'as it should be' : row.faults.join('; ')}`);
  return row;
}

/** False when `ms` pass before it holds. */
async function until(holds: () => boolean, ms: number): Promise<boolean> {
  const end = Date.now() + ms;
  while (!holds()) {
    if (Date.now() > end) return false;
    await delay(250);
  }
  return true;
}
