import {
  between,
  born,
  type Case,
  calls,
  counter,
  fleet,
  gauge,
  held,
  lateness,
  latenessCount,
  night,
  protocolErrors,
  settled,
  silent,
  stopped,
  submitted,
  took,
  tookCount,
  toolHeld,
  until,
} from './series.js';

/** What goes wrong at a server, and what only looks like it, minute by minute. Each case is a server of its own. */
export function serverCases(): Case[] {
  return [
    {
      title: 'TrawlRunsEmpty: every run turns empty, and recovers',
      series: { ...night, [settled('succeeded')]: between(8.8, 0), [settled('empty')]: between(0.5, 9.3) },
      checks: [
        { at: 58, firing: [] },
        { at: 76, firing: ['TrawlRunsEmpty'] },
        { at: 100, firing: ['TrawlRunsEmpty'] },
        { at: 122, firing: [], muted: ['TrawlRunsEmpty', 'TrawlBurnFast'] },
        { at: 146, firing: [] },
      ],
    },
    {
      title: 'TrawlRunsEmpty: three of four runs turn empty',
      series: { ...night, [settled('succeeded')]: between(8.8, 2), [settled('empty')]: between(0.5, 7.3) },
      checks: [
        { at: 58, firing: [] },
        { at: 118, firing: ['TrawlRunsEmpty'] },
        { at: 140, firing: [] },
      ],
    },
    {
      title: 'TrawlRunsEmpty: the brake stops the tool after twenty, and its probes stay empty',
      series: {
        ...night,
        [submitted]: between(10, 0.2),
        [settled('succeeded')]: between(8.8, 0),
        [settled('failed')]: between(0.7, 0),
        [settled('empty')]: counter([60, 0.5], [2, 8], [58, 0.2], [60, 0.5]),
        [toolHeld('brake')]: gauge([62, 0], [58, 1], [60, 0]),
      },
      checks: [
        { at: 72, firing: ['TrawlRunsEmpty'], muted: ['TrawlToolHeld'] },
        { at: 90, firing: ['TrawlRunsEmpty'], muted: ['TrawlToolHeld'] },
        { at: 118, firing: ['TrawlRunsEmpty'], muted: ['TrawlToolHeld', 'TrawlBurnFast'] },
        { at: 140, firing: [] },
      ],
    },
    {
      title: 'TrawlRunsEmpty: good probes end it together with the hold, which is no incident of its own',
      series: {
        ...night,
        [submitted]: between(10, 0.2),
        [settled('succeeded')]: counter([60, 8.8], [30, 0], [30, 0.2], [60, 8.8]),
        [settled('failed')]: between(0.7, 0),
        [settled('empty')]: counter([60, 0.5], [2, 8], [28, 0.2], [30, 0], [60, 0.5]),
        [toolHeld('brake')]: gauge([62, 0], [48, 1], [70, 0]),
      },
      checks: [
        { at: 90, firing: ['TrawlRunsEmpty'], muted: ['TrawlToolHeld'] },
        { at: 106, firing: ['TrawlRunsEmpty'], muted: ['TrawlToolHeld', 'TrawlBurnFast'] },
        { at: 114, firing: [], muted: ['TrawlBurnFast'] },
        { at: 140, firing: [] },
      ],
    },
    {
      title: 'TrawlSchemaChanged: starts get -32602, scrapes are rejected, the brake holds the tool',
      series: {
        ...night,
        ...stopped,
        [submitted]: between(10, 0.2),
        [settled('rejected')]: counter([60, 0], [2, 10], [58, 0.2], [60, 0]),
        [calls('start', 'ok')]: between(10, 0),
        [calls('start', 'protocol_error')]: counter([60, 0], [2, 10], [58, 0.2], [60, 0]),
        [protocolErrors('start', '-32602')]: born(60, 20, 119, 0.1),
        [toolHeld('brake')]: gauge([62, 0], [58, 1], [60, 0]),
      },
      checks: [
        { at: 58, firing: [] },
        { at: 76, firing: ['TrawlSchemaChanged'], muted: ['TrawlToolHeld'] },
        { at: 110, firing: ['TrawlSchemaChanged'], muted: ['TrawlToolHeld'] },
        { at: 140, firing: [] },
      ],
    },
    {
      title: 'TrawlSchemaChanged: call-actor says so as a tool error',
      series: {
        ...night,
        ...stopped,
        [settled('rejected')]: between(0, 10),
        [calls('start', 'ok')]: between(10, 0),
        [calls('start', 'invalid_input')]: born(60, 20, 119, 0.1),
      },
      checks: [
        { at: 58, firing: [] },
        { at: 118, firing: ['TrawlSchemaChanged'] },
        { at: 140, firing: [] },
      ],
    },
    {
      title: 'TrawlSchemaChanged: two inputs that do not fit',
      series: {
        ...night,
        [settled('rejected')]: counter([60, 0], [2, 1], [118, 0]),
        [protocolErrors('start', '-32602')]: born(60, 2, 119),
      },
      checks: silent(64, 70, 120),
    },
    {
      title: 'TrawlInputsRejected: our own check refuses most inputs, and no server said -32602',
      series: { ...night, ...stopped, [settled('rejected')]: between(0, 10) },
      checks: [
        { at: 58, firing: [] },
        { at: 118, firing: ['TrawlInputsRejected'] },
        { at: 140, firing: [] },
      ],
    },
    {
      title: 'TrawlInputsRejected: four of them',
      series: { ...fleet([180, 0]), [settled('rejected')]: counter([60, 0], [4, 1], [116, 0]) },
      checks: silent(70, 90, 120),
    },
    {
      title: 'TrawlServerAtLimit: cools down most of the time',
      series: {
        ...night,
        [held('capacity')]: gauge([60, 0], [60, 1], [60, 0]),
        [calls('start', 'capacity')]: born(60, 1, 60, 1),
      },
      checks: [
        { at: 66, firing: [] },
        { at: 90, firing: ['TrawlServerAtLimit'] },
        { at: 150, firing: [] },
      ],
    },
    {
      title: 'TrawlServerAtLimit: a few refusals, and short cool-downs',
      series: {
        ...night,
        [held('rate_limit')]: gauge([60, 0], [6, 1], [114, 0]),
        [calls('start', 'rate_limited')]: born(60, 1, 60, 0.05),
      },
      checks: silent(66, 76, 100),
    },
    {
      title: 'TrawlToolHeld: runs fail, the brake holds the tool, and one of its probes is empty',
      series: {
        ...night,
        ...stopped,
        [submitted]: between(10, 0.2),
        [settled('failed')]: counter([60, 0.7], [3, 9.3], [57, 0.2], [60, 0.7]),
        [settled('empty')]: counter([60, 0.5], [20, 0], [2, 0.5], [38, 0], [60, 0.5]),
        [toolHeld('brake')]: gauge([63, 0], [57, 1], [60, 0]),
      },
      checks: [
        { at: 90, firing: ['TrawlToolHeld'], muted: ['TrawlBurnFast'] },
        { at: 118, firing: ['TrawlToolHeld'], muted: ['TrawlBurnFast'] },
      ],
    },
    {
      title: 'TrawlToolHeld: runs fail one after another, and the brake holds the tool',
      series: {
        ...night,
        [settled('succeeded')]: between(8.8, 4),
        [settled('failed')]: counter([60, 0.7], [3, 8], [57, 0.2], [60, 0.7]),
        [toolHeld('brake')]: gauge([63, 0], [57, 1], [60, 0]),
      },
      checks: [
        { at: 66, firing: [] },
        { at: 80, firing: ['TrawlToolHeld'] },
        { at: 130, firing: [] },
      ],
    },
    {
      title: 'TrawlServerFailing: the server hangs, calls time out',
      series: {
        ...night,
        ...stopped,
        [calls('start', 'ok')]: between(10, 0),
        [calls('poll', 'ok')]: between(40, 10),
        [calls('read', 'ok')]: between(10, 0),
        [calls('poll', 'timeout')]: born(60, 20, 59, 20),
      },
      checks: [
        { at: 58, firing: [] },
        { at: 100, firing: ['TrawlServerFailing'], muted: ['TrawlStalled'] },
        { at: 146, firing: [] },
      ],
    },
    {
      title: 'TrawlServerFailing: little traffic, five HTTP errors and not one answer',
      series: {
        ...fleet([180, 0]),
        [calls('poll', 'http_error')]: (step) => counter([70, 0], [5, 1], [105, 0])(step),
      },
      checks: [
        { at: 60, firing: [] },
        { at: 82, firing: ['TrawlServerFailing'] },
        { at: 150, firing: [] },
      ],
    },
    {
      title: 'TrawlServerFailing: two timeouts at night',
      series: { ...fleet([180, 0]), [calls('poll', 'timeout')]: born(60, 2, 119) },
      checks: silent(66, 76, 120),
    },
    {
      title: 'TrawlProtocolErrors: a third of the polls get -32603',
      series: {
        ...night,
        [calls('poll', 'protocol_error')]: between(0, 30),
        [calls('poll', 'ok')]: between(40, 10),
        [protocolErrors('poll', '-32603')]: born(60, 30, 59, 30),
      },
      checks: [
        { at: 58, firing: [] },
        { at: 100, firing: ['TrawlProtocolErrors'] },
        { at: 146, firing: [] },
      ],
    },
    {
      title: 'TrawlProtocolErrors: two of them',
      series: { ...fleet([180, 0]), [protocolErrors('poll', '-32603')]: born(60, 2, 119) },
      checks: silent(66, 76, 120),
    },
    {
      title: 'TrawlServerSlow: half of the calls take longer than 15 s',
      series: { ...night, [took('15')]: between(10, 5) },
      checks: [
        { at: 58, firing: [] },
        { at: 116, firing: ['TrawlServerSlow'] },
        { at: 146, firing: [] },
      ],
    },
    {
      title: 'TrawlServerSlow: five slow calls',
      series: {
        ...fleet([180, 0]),
        [took('+Inf')]: counter([60, 0], [5, 1], [115, 0]),
        [tookCount]: counter([60, 0], [5, 1], [115, 0]),
      },
      checks: silent(70, 100),
    },
    {
      title: 'TrawlStartsUnanswered: scrapes end start_unknown',
      series: { ...night, [settled('start_unknown')]: counter([60, 0], [30, 0.2], [90, 0]) },
      checks: [
        { at: 58, firing: [] },
        { at: 96, firing: ['TrawlStartsUnanswered'] },
        { at: 166, firing: [] },
      ],
    },
    {
      title: 'TrawlStartsUnanswered: one of them',
      series: { ...night, [settled('start_unknown')]: counter([60, 0], [1, 1], [119, 0]) },
      checks: silent(70, 100),
    },
    {
      title: 'TrawlStartsUnanswered: a fifth of the starts is lost and found again',
      series: {
        ...night,
        'trawl_ambiguous_starts_total{server="apify",resolution="adopted",instance="w1",job="trawl"}': born(
          60,
          2,
          120,
          2,
        ),
      },
      checks: [
        { at: 58, firing: [] },
        { at: 110, firing: ['TrawlStartsUnanswered'] },
      ],
    },
    {
      title: 'TrawlOrphanRuns: five runs without an owner are ended',
      series: {
        ...night,
        'trawl_orphan_runs_total{server="apify",action="aborted",instance="w1",job="trawl"}': born(
          60,
          5,
          120,
        ),
      },
      checks: [
        { at: 58, firing: [] },
        { at: 64, firing: ['TrawlOrphanRuns'] },
        { at: 130, firing: [] },
      ],
    },
    {
      title: 'TrawlOrphanRuns: one of them',
      series: {
        ...night,
        'trawl_orphan_runs_total{server="apify",action="aborted",instance="w1",job="trawl"}': born(
          60,
          1,
          120,
        ),
      },
      checks: silent(64, 100),
    },
    {
      title: 'TrawlPollsLate: a third of the polls is late',
      series: { ...night, [lateness('30')]: between(40, 25) },
      checks: [
        { at: 58, firing: [] },
        { at: 106, firing: ['TrawlPollsLate'] },
        { at: 146, firing: [] },
      ],
    },
    {
      title: 'TrawlPollsLate: five late polls',
      series: {
        ...fleet([180, 0]),
        [lateness('+Inf')]: counter([60, 0], [5, 1], [115, 0]),
        [latenessCount]: counter([60, 0], [5, 1], [115, 0]),
      },
      checks: silent(70, 100),
    },
    {
      title: 'TrawlSeriesGone: one server of a fleet is gone, the workers are there',
      series: until(90, fleet([90, 0])),
      checks: [
        { at: 88, firing: [] },
        { at: 100, firing: ['TrawlSeriesGone'] },
        { at: 156, firing: [] },
      ],
    },
    {
      title: 'TrawlBurnFast: most scrapes fail',
      series: {
        ...fleet([180, 1]),
        [settled('succeeded')]: counter([60, 8.8], [80, 0], [40, 8.8]),
        [settled('empty')]: counter([60, 0.5], [80, 0], [40, 0.5]),
        [settled('failed')]: counter([60, 0.7], [80, 10], [40, 0.7]),
      },
      checks: [
        { at: 90, firing: [] },
        { at: 136, firing: ['TrawlBurnFast'] },
        { at: 150, firing: [] },
      ],
    },
    {
      title: 'TrawlBurnFast: runs miss their deadlines',
      series: {
        ...fleet([180, 1]),
        [settled('succeeded')]: counter([60, 8.8], [60, 5.8], [60, 8.8]),
        [settled('deadline_exceeded')]: counter([60, 0], [60, 3], [60, 0]),
      },
      checks: [
        { at: 58, firing: [] },
        { at: 116, firing: ['TrawlBurnFast'], muted: ['TrawlBurnSlow'] },
        { at: 160, firing: [], muted: ['TrawlBurnSlow'] },
      ],
    },
    {
      title: 'TrawlBurnFast: five failures, and nothing else, at night',
      series: { ...fleet([180, 0]), [settled('failed')]: counter([60, 0], [5, 1], [115, 0]) },
      checks: silent(70, 100),
    },
  ];
}
