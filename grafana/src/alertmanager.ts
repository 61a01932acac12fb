import { toYaml } from './render-prometheus.js';
import { hours, minutes, type Scale } from './scale.js';

export type Receiver = 'page' | 'ticket' | 'heartbeat';

interface Inhibition {
  readonly source: readonly string[];
  readonly target: readonly string[];
  readonly equal?: readonly string[];
}

/** One incident, one page: what is muted while something above it is wrong (docs/runbooks/README.md draws it). */
export const inhibitions: readonly Inhibition[] = [
  // Redis away or no worker: everything else follows from it.
  {
    source: ['alertname=~"TrawlRedisUnreachable|TrawlWorkersDown"'],
    target: ['layer=~"hold|cause|effect|notice"'],
  },
  // A full Redis refuses writes, which looks like a Redis that is away; an evicting one is full too.
  {
    source: ['alertname="TrawlRedisEvicts"'],
    target: ['alertname=~"TrawlRedisNearlyFull|TrawlRedisUnreachable"'],
  },
  { source: ['alertname="TrawlRedisNearlyFull"'], target: ['alertname="TrawlRedisUnreachable"'] },
  {
    source: ['alertname=~"TrawlRedisEvicts|TrawlRedisNearlyFull|TrawlSinkRefuses"'],
    target: ['layer="effect"'],
  },
  // A held server: its empties, protocol errors, lateness and burn rates say nothing new.
  { source: ['layer="hold"'], target: ['layer=~"cause|effect"'], equal: ['server'] },
  // Of two holds of one server only the heavier pages: nothing can be listed without a token or a connection.
  {
    source: ['alertname=~"TrawlTokenRevoked|TrawlServerUnreachable"'],
    target: ['alertname=~"TrawlToolsMissing|TrawlPaymentRequired"'],
    equal: ['server'],
  },
  { source: ['layer="cause"'], target: ['layer="effect"'], equal: ['server'] },
  // A server that hangs or answers with errors explains what its tools do.
  {
    source: ['alertname=~"TrawlServerFailing|TrawlProtocolErrors"'],
    target: ['alertname=~"TrawlRunsEmpty|TrawlSchemaChanged"'],
    equal: ['server'],
  },
  {
    source: ['alertname="TrawlServerFailing"'],
    target: ['alertname="TrawlProtocolErrors"'],
    equal: ['server'],
  },
  // Stalled is heavier than what it comes with, and a fast burn than a slow one.
  {
    source: ['alertname="TrawlStalled"'],
    target: ['alertname=~"TrawlPollsLate|TrawlServerSlow|TrawlServerAtLimit|TrawlBurn.+"'],
    equal: ['server'],
  },
  { source: ['alertname="TrawlBacklogNotAccepted"'], target: ['alertname=~"TrawlStalled|TrawlBurn.+"'] },
  {
    source: ['alertname=~"TrawlInputsRejected|TrawlStartsUnanswered|TrawlServerSlow|TrawlPollsLate"'],
    target: ['alertname=~"TrawlToolHeld|TrawlBurnSlow"'],
    equal: ['server'],
  },
  // What is asked too often, or too slow to answer, is asked late.
  {
    source: ['alertname=~"TrawlServerSlow|TrawlServerAtLimit"'],
    target: ['alertname="TrawlPollsLate"'],
    equal: ['server'],
  },
  { source: ['alertname="TrawlBurnFast"'], target: ['alertname="TrawlBurnSlow"'], equal: ['server'] },
  // A missed deadline is a scrape that did not end as asked: the narrower objective says more.
  {
    source: ['alertname=~"TrawlBurn.+"', 'objective="deadline"'],
    target: ['alertname=~"TrawlBurn.+"', 'objective="scrapes"'],
    equal: ['server'],
  },
];

/**
 * Alertmanager's configuration: critical pages, warnings make tickets, the watchdog goes to something that calls when it
 * stops.
 * @param receivers integrations by receiver (`{ webhook_configs: [...] }`); none: notifications end there
 */
export function alertmanagerConfig(scale: Scale, receivers: Partial<Record<Receiver, object>> = {}): string {
  const times = (wait: number, interval: number, repeat: number) => ({
    group_wait: scale.text(wait),
    group_interval: scale.text(interval),
    repeat_interval: scale.text(repeat),
  });
  const note =
    '# The receivers send nothing until you say where to: see docs/runbooks/README.md, "Where pages go".\n';
  return toYaml({
    route: {
      receiver: 'ticket',
      group_by: ['alertname', 'server'],
      ...times(30, minutes(5), hours(12)),
      routes: [
        {
          receiver: 'heartbeat',
          matchers: ['alertname="TrawlWatchdog"'],
          ...times(0, minutes(1), minutes(5)),
        },
        { receiver: 'page', matchers: ['severity="critical"'], ...times(30, minutes(5), hours(4)) },
        { receiver: 'ticket', matchers: ['severity=~"warning|info"'] },
      ],
    },
    inhibit_rules: inhibitions.map(({ source, target, equal }) => ({
      source_matchers: source,
      target_matchers: target,
      ...(equal === undefined ? {} : { equal }),
    })),
    receivers: (['page', 'ticket', 'heartbeat'] as const).map((name) => ({ name, ...receivers[name] })),
  }).replace('\n', `\n${note}`);
}
