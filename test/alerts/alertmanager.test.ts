import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { alertsOf } from '../../grafana/src/generate.js';
import { AlertmanagerProcess } from './alertmanager-process.js';

const config = fileURLToPath(new URL('../../grafana/prometheus/alertmanager.yml', import.meta.url));
const alerts = new Map(alertsOf().map((alert) => [alert.name, alert]));

describe('routes', () => {
  const receiverOf = (labels: string[]) =>
    spawnSync('amtool', ['config', 'routes', 'test', `--config.file=${config}`, ...labels], {
      encoding: 'utf8',
    }).stdout.trim();

  it.each([
    [['alertname=TrawlRunsEmpty', 'severity=critical'], 'page'],
    [['alertname=TrawlPollsLate', 'severity=warning'], 'ticket'],
    [['alertname=TrawlWatchdog', 'severity=info'], 'heartbeat'],
    [['alertname=SomethingElse'], 'ticket'],
  ])('%s goes to %s', (labels, receiver) => {
    expect(receiverOf(labels)).toBe(receiver);
  });
});

const named = (labels: Readonly<Record<string, string>>): string =>
  [labels.alertname, labels.server, labels.objective].filter((each) => each !== undefined).join(' ');

/** `TrawlRunsEmpty apify` as the labels the rule would give it. */
function labelsOf(text: string): Readonly<Record<string, string>> {
  const [name = '', server = '', objective = ''] = text.split(' ');
  const alert = alerts.get(name);
  if (alert === undefined) throw new Error(`no alert ${name}`);
  const labels: Record<string, string> = { alertname: name, severity: alert.severity, layer: alert.layer };
  if (server !== '') labels.server = server;
  if (server !== '' && alert.labels.includes('tool')) labels.tool = 'a/b';
  if (objective !== '') labels.objective = objective;
  return labels;
}

describe('one incident, one page', () => {
  let alertmanager: AlertmanagerProcess;
  beforeAll(async () => {
    alertmanager = await AlertmanagerProcess.start(config);
  });
  afterAll(() => alertmanager.stop());

  it.each<[what: string, firing: string[], left: string[]]>([
    [
      'Redis away mutes everything but the watchdog',
      [
        'TrawlRedisUnreachable',
        'TrawlTokenRevoked a',
        'TrawlRunsEmpty a',
        'TrawlStalled a',
        'TrawlSeriesGone a',
        'TrawlWorkerStuck',
        'TrawlWatchdog',
      ],
      ['TrawlRedisUnreachable', 'TrawlWatchdog'],
    ],
    [
      'no worker mutes everything else',
      [
        'TrawlWorkersDown',
        'TrawlSeriesGone a',
        'TrawlStalled a',
        'TrawlBurnFast a scrapes',
        'TrawlPausedLong a',
      ],
      ['TrawlWorkersDown'],
    ],
    [
      'a full Redis refuses writes and looks away',
      ['TrawlRedisNearlyFull', 'TrawlRedisUnreachable', 'TrawlStalled a', 'TrawlBacklogNotAccepted'],
      ['TrawlRedisNearlyFull'],
    ],
    ['a Redis that evicts is full too', ['TrawlRedisEvicts', 'TrawlRedisNearlyFull'], ['TrawlRedisEvicts']],
    [
      'a full disk stops what settles',
      ['TrawlSinkRefuses', 'TrawlStalled a', 'TrawlBurnFast b scrapes', 'TrawlRunsEmpty b'],
      ['TrawlRunsEmpty b', 'TrawlSinkRefuses'],
    ],
    [
      'a held server mutes its empties, protocol errors, lateness and burn rates, and nobody else',
      [
        'TrawlTokenRevoked a',
        'TrawlRunsEmpty a',
        'TrawlProtocolErrors a',
        'TrawlPollsLate a',
        'TrawlBurnFast a scrapes',
        'TrawlServerFailing a',
        'TrawlRunsEmpty b',
        'TrawlBurnSlow b scrapes',
      ],
      ['TrawlRunsEmpty b', 'TrawlTokenRevoked a'],
    ],
    [
      'a dead token that also empties the list of tools',
      ['TrawlTokenRevoked a', 'TrawlToolsMissing a', 'TrawlToolHeld a'],
      ['TrawlTokenRevoked a'],
    ],
    [
      'an upstream that turns empty, the brake, and the objective',
      ['TrawlRunsEmpty a', 'TrawlToolHeld a', 'TrawlBurnFast a scrapes', 'TrawlBurnSlow a scrapes'],
      ['TrawlRunsEmpty a'],
    ],
    [
      'a changed schema, the brake, and rejected inputs',
      ['TrawlSchemaChanged a', 'TrawlInputsRejected a', 'TrawlToolHeld a'],
      ['TrawlSchemaChanged a'],
    ],
    [
      'a server that hangs',
      [
        'TrawlServerFailing a',
        'TrawlServerSlow a',
        'TrawlPollsLate a',
        'TrawlStartsUnanswered a',
        'TrawlStalled a',
        'TrawlProtocolErrors a',
        'TrawlRunsEmpty a',
      ],
      ['TrawlServerFailing a'],
    ],
    [
      'missed deadlines are bad scrapes too',
      [
        'TrawlBurnFast a deadline',
        'TrawlBurnFast a scrapes',
        'TrawlBurnSlow a deadline',
        'TrawlBurnSlow a scrapes',
      ],
      ['TrawlBurnFast a deadline'],
    ],
    [
      'two incidents are two pages',
      ['TrawlRunsEmpty a', 'TrawlCostsRunAway a', 'TrawlJobsInvalid', 'TrawlPaymentRequired b'],
      ['TrawlCostsRunAway a', 'TrawlJobsInvalid', 'TrawlPaymentRequired b', 'TrawlRunsEmpty a'],
    ],
  ])('%s', async (_what, firing, left) => {
    await alertmanager.fire(firing.map(labelsOf));
    const unmuted = async () => {
      const muted = (await alertmanager.muted()).map(named);
      return firing.filter((each) => !muted.includes(each)).sort();
    };
    await expect.poll(unmuted, { timeout: 5_000, interval: 20 }).toEqual(left);
    await alertmanager.resolve(firing.map(labelsOf));
  });
});
