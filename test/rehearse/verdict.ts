import { alertsOf } from '../../grafana/src/generate.js';
import { type Incident, owns } from './incident.js';
import type { Stack } from './stack.js';
import { nameOf } from './watch.js';
import type { Labels } from './webhook.js';

/** Moments in ms since 1970. */
export interface Course {
  readonly from: number;
  readonly causedAt: number;
  readonly healedAt: number;
  /** When somebody was told of the expected alert, and that it is over. */
  readonly firedAt: number | null;
  readonly resolvedAt: number | null;
  readonly stillFiring: readonly string[];
  /** What the runbook asks to see what is wrong, and what returned nothing while it was. */
  readonly silentQueries: readonly string[];
}

export interface Row {
  readonly incident: Incident;
  readonly course: Course;
  readonly to: number;
  /** Names of alerts at Prometheus, muted ones too. */
  readonly fired: readonly string[];
  /** Names and receivers of what somebody was told. */
  readonly pages: readonly string[];
  readonly tickets: readonly string[];
  readonly falseOnes: readonly string[];
  /** What is not as it should be; empty: all is. */
  readonly faults: readonly string[];
}

const severities = new Map(alertsOf().map(({ name, severity }) => [name, severity]));

/** What was seen, against what the incident expects: its alert, one page if it pages, and nobody told of anything else. */
export function rowOf(incident: Incident, stack: Stack, course: Course): Row {
  const { expected, along = [] } = incident;
  const mine = (labels: Labels) => owns(incident, labels);
  const told = stack.watch.notified(course.from, mine).filter(({ status }) => status === 'firing');
  const named = (receiver: string) =>
    told
      .filter((each) => each.receiver === receiver)
      .map(({ alerts }) => [...new Set(alerts.map(({ labels }) => nameOf(labels)))].join('+'));
  const pages = named('page');
  const tickets = named('ticket');
  const names = new Set(told.flatMap(({ alerts }) => alerts.map(({ labels }) => nameOf(labels))));
  const falseOnes = [...names].filter((name) => name !== expected && !along.includes(name));
  const faults: string[] = [];
  if (expected !== null) {
    const pagesDue = severities.get(expected) === 'critical' ? 1 : 0;
    if (course.firedAt === null) faults.push(`missed: ${expected} did not notify`);
    else if (course.firedAt < course.causedAt) faults.push(`${expected} notified before its cause`);
    else if (course.resolvedAt === null) faults.push(`${expected} did not resolve`);
    if (pages.length !== pagesDue) faults.push(`${pages.length} pages instead of ${pagesDue}`);
  }
  if (falseOnes.length > 0) faults.push(`false: ${falseOnes.join(', ')}`);
  for (const query of course.silentQueries) faults.push(`the runbook's query returned nothing: ${query}`);
  if (course.stillFiring.length > 0) faults.push(`still firing: ${course.stillFiring.join(', ')}`);
  const fired = [...new Set(stack.watch.fired(course.from, mine).map(({ labels }) => nameOf(labels)))];
  return { incident, course, to: Date.now(), fired, pages, tickets, falseOnes, faults };
}

/** Notifications of firing alerts that no incident caused, or that came after it was over. */
export function strays(rows: readonly Row[], stack: Stack, since: number): string[] {
  const explained = (at: number, labels: Labels) =>
    rows.some(({ incident, course, to }) => {
      if (at < course.from || !owns(incident, labels)) return false;
      return at <= to || (incident.along ?? []).includes(nameOf(labels));
    });
  const found = new Set<string>();
  for (const { at, status, alerts } of stack.watch.notified(since, () => true)) {
    if (status === 'resolved') continue;
    for (const { labels, status: own } of alerts) {
      if (own === 'resolved' || explained(at, labels)) continue;
      found.add([nameOf(labels), labels.server].filter((each) => each !== undefined).join(' '));
    }
  }
  return [...found];
}
