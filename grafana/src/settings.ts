import { days, hours, minutes } from './scale.js';

/**
 * Thresholds, minimum volumes and spans of every rule, in one place. Ratios are 0 to 1, spans seconds, money US dollars.
 * The reasons are in docs/runbooks, one file an alert; change a number here and run `npm run grafana`.
 */
export const settings = {
  /** The scrape job of Prometheus in which the workers are. */
  job: 'trawl',
  urls: {
    grafana: 'http://localhost:3000',
    /** The compose file has Grafana serve the folder. */
    runbooks: 'http://localhost:3000/public/runbooks',
  },
  /** Fleet gauges come from one elected process and are missing for some seconds when another is elected. */
  bridge: minutes(2),
  empty: {
    /** Above the tool's own usual ratio by this factor and by these points. */
    factor: 3,
    points: 0.2,
    /** Taken for usual until the tool has a history. */
    assumedUsual: 0.2,
    history: days(7),
    /** The present does not count as history. */
    historyBefore: hours(6),
    historyRuns: 50,
    minRuns: 20,
    row: 10,
    /** A tool that is empty so often by itself has ten in a row on a good night. */
    rowUsualBelow: 0.5,
  },
  rejected: { ratio: 0.5, minScrapes: 5, minInvalidParams: 3, invalidShare: 0.5 },
  /** So many bad runs within the windows say why the brake holds a tool; a single probe does not. */
  brake: { minRuns: 5 },
  failed: { ratio: 0.2, minCalls: 20, row: 3 },
  protocol: { ratio: 0.1, minCalls: 20, row: 3 },
  slow: { seconds: 15, ratio: 0.2, minCalls: 20 },
  late: { seconds: 30, ratio: 0.1, minPolls: 20 },
  limit: { share: 0.5, over: minutes(30), minRefusals: 10 },
  workers: { unreachable: 60, stuck: minutes(10), lastKnown: days(1) },
  redis: { fullRatio: 0.9, evictedOver: minutes(15) },
  sink: { minErrors: 3 },
  orphans: { minRuns: 3 },
  starts: { unknown: 3, ambiguous: 5, ambiguousRatio: 0.1 },
  cost: { factor: 3, minUsd: 5, dayUsd: 100, historyRuns: 50 },
  invalid: { ratio: 0.1, minJobs: 10 },
  stalled: { after: minutes(15), longRuns: minutes(75), share: 0.8, shortRun: 450 },
  traffic: { day: hours(26), week: days(7) },
  gone: hours(1),
  paused: hours(24),
  objectives: {
    /**
     * Scrapes that end `succeeded` or `low_count`, out of those whose end is not the producer's doing. About one run in ten
     * of a real site fails or is empty on a good night.
     */
    scrapes: 0.85,
    /** Runs that end within their deadline. */
    deadline: 0.99,
  },
  burn: {
    /** With a budget of 15 % everything may be bad and burn but 6.7 times of it: so bad is as bad as it gets. */
    capRatio: 0.9,
    fast: [
      { factor: 14.4, long: '1h', short: '5m', volume: '1h' },
      { factor: 6, long: '6h', short: '30m', volume: '6h' },
    ],
    slow: [
      { factor: 3, long: '1d', short: '2h', volume: '6h' },
      { factor: 1, long: '3d', short: '6h', volume: '6h' },
    ],
    /** Scrapes in the window `volume`. */
    minFast: 20,
    minSlow: 50,
  },
  /**
   * How long a condition has to last. Effects wait longer than their causes, so that the cause mutes them in time; `hold`
   * is longer than `bridge`, which keeps a hold of a second alive for two minutes.
   */
  for: { platform: minutes(1), hold: minutes(3), cause: minutes(5), effect: minutes(10), notice: minutes(5) },
} as const;

export type Settings = typeof settings;

/** The windows that recorded counts and ratios exist for. */
export const windows = {
  '5m': minutes(5),
  '15m': minutes(15),
  '30m': minutes(30),
  '1h': hours(1),
  '2h': hours(2),
  '6h': hours(6),
  '1d': days(1),
  '3d': days(3),
} as const;
export type Window = keyof typeof windows;
