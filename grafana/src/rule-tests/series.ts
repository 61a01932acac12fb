/** Values of one series at a sample every `step` minutes, in promtool's notation. */
export type Values = (step: number) => string;
export type SeriesSet = Readonly<Record<string, Values>>;

export interface Check {
  /** Minutes from the start. */
  readonly at: number;
  /** Exactly these fire, the watchdog aside. */
  readonly firing: readonly string[];
  /** These may fire beside: Alertmanager mutes them meanwhile. */
  readonly muted?: readonly string[];
}

export interface Case {
  readonly title: string;
  readonly series: SeriesSet;
  readonly checks: readonly Check[];
  /** A page, word for word. */
  readonly page?: {
    readonly at: number;
    readonly alert: string;
    readonly labels: Readonly<Record<string, string>>;
    readonly annotations: Readonly<Record<string, string>>;
  };
}

export type Phase = readonly [minutes: number, perMinute: number];
const absent = Number.NaN;
/** In a phase: the series is not there. */
export const gone = absent;

/** A counter that grows by so much a minute, phase after phase. It keeps its value over a phase without it. */
export function counter(...phases: readonly Phase[]): Values {
  return (step) => {
    let value = 0;
    return phases
      .map(([minutes, rate]) => {
        const samples = Math.round(minutes / step);
        if (Number.isNaN(rate)) return `_x${samples}`;
        const first = value;
        value = Math.round((value + rate * step * samples) * 1e6) / 1e6;
        return `${first}+${Math.round(rate * step * 1e6) / 1e6}x${samples - 1}`;
      })
      .join(' ');
  };
}

/** A counter whose series is born late, with a value already. */
export function born(at: number, first: number, minutes: number, perMinute = 0): Values {
  return (step) =>
    `_x${Math.round(at / step)} ${first}+${perMinute * step}x${Math.round(minutes / step) - 1}`;
}

/** A gauge that stands at these values, phase after phase. */
export function gauge(...phases: readonly Phase[]): Values {
  return (step) =>
    phases
      .map(([minutes, value]) => {
        const samples = Math.round(minutes / step);
        return Number.isNaN(value) ? `stale _x${samples - 1}` : `${value}+0x${samples - 1}`;
      })
      .join(' ');
}

/** A time that runs along with the clock, and from a minute on stands still. */
export function clock(minutes: number, stopsAt = minutes): Values {
  return (step) => {
    const running = Math.round(stopsAt / step);
    const rest = Math.round((minutes - stopsAt) / step);
    return `0+${60 * step}x${running - 1}${rest > 0 ? ` ${60 * step * (running - 1)}+0x${rest - 1}` : ''}`;
  };
}

const target = 'instance="w1",job="trawl"';
export const name = (metric: string, labels = ''): string =>
  `${metric}{${[labels, target].filter((each) => each !== '').join(',')}}`;
export const tool = 'compass/crawler-google-places';
const pair = `server="apify",tool="${tool}"`;
export const settled = (outcome: string) =>
  name('trawl_scrapes_settled_total', `${pair},outcome="${outcome}"`);
export const submitted = name('trawl_scrapes_submitted_total', pair);
export const calls = (operation: string, result: string) =>
  name('trawl_mcp_requests_total', `server="apify",operation="${operation}",result="${result}"`);
export const protocolErrors = (operation: string, code: string) =>
  name('trawl_mcp_protocol_errors_total', `server="apify",operation="${operation}",code="${code}"`);
export const held = (reason: string) => name('trawl_server_held', `server="apify",reason="${reason}"`);
export const toolHeld = (reason: string) => name('trawl_tool_held', `${pair},reason="${reason}"`);
export const usage = name('trawl_usage_usd_total', pair);
export const jobs = (queue: string, state: string) =>
  name('trawl_queue_jobs', `queue="${queue}",state="${state}"`);
export const fetched = (queue: string) =>
  name('trawl_worker_last_fetch_timestamp_seconds', `queue="${queue}"`);
export const runDuration = (le: string) => name('trawl_run_duration_seconds_bucket', `${pair},le="${le}"`);
export const lateness = (le: string) =>
  name('trawl_poll_lateness_seconds_bucket', `server="apify",le="${le}"`);
export const latenessCount = name('trawl_poll_lateness_seconds_count', 'server="apify"');
export const took = (le: string) =>
  name('trawl_mcp_request_duration_seconds_bucket', `server="apify",operation="read",le="${le}"`);
export const tookCount = name('trawl_mcp_request_duration_seconds_count', 'server="apify",operation="read"');
export const up = name('up');
const mega = 1_048_576;

/**
 * A fleet of one worker that works on ten scrapes a minute, as a good night is: 5 % empty, 7 % failed, runs of some minutes.
 * @param load phases of 1 (works) and 0 (idle)
 */
export function fleet(...load: readonly Phase[]): SeriesSet {
  const all = load.reduce((sum, [minutes]) => sum + minutes, 0);
  const grows = (perMinute: number) =>
    counter(...load.map(([minutes, share]) => [minutes, share * perMinute] as const));
  const stands = (value: number) =>
    gauge(...load.map(([minutes, share]) => [minutes, share * value] as const));
  const always = (value: number) => gauge([all, value]);
  const reasons = [
    'auth',
    'payment',
    'capacity',
    'rate_limit',
    'tools_missing',
    'unreachable',
    'brake',
    'paused',
  ];
  const never = [
    'low_count',
    'capped',
    'deadline_exceeded',
    'cancelled',
    'expired',
    'rejected',
    'start_unknown',
    'lost',
    'errored',
  ];
  return {
    [up]: always(1),
    [name('trawl_build_info', 'version="0.1.0"')]: always(1),
    [submitted]: grows(10),
    [settled('succeeded')]: grows(8.8),
    [settled('empty')]: grows(0.5),
    [settled('failed')]: grows(0.7),
    ...Object.fromEntries(never.map((outcome) => [settled(outcome), always(0)])),
    [usage]: grows(0.02),
    [calls('start', 'ok')]: grows(10),
    [calls('poll', 'ok')]: grows(40),
    [calls('read', 'ok')]: grows(10),
    ...Object.fromEntries(
      ['start', 'poll', 'read'].flatMap((operation) => [
        [calls(operation, 'protocol_error'), always(0)],
        [calls(operation, 'tool_error'), always(0)],
      ]),
    ),
    [runDuration('300')]: grows(9),
    [runDuration('600')]: grows(9.5),
    [runDuration('+Inf')]: grows(10),
    [lateness('30')]: grows(40),
    [lateness('+Inf')]: grows(40),
    [latenessCount]: grows(40),
    [took('15')]: grows(10),
    [took('+Inf')]: grows(10),
    [tookCount]: grows(10),
    [jobs('start-apify', 'prioritized')]: stands(40),
    [jobs('start-apify', 'waiting')]: always(0),
    [jobs('start-apify', 'delayed')]: always(0),
    [jobs('scrape', 'waiting')]: always(0),
    [jobs('scrape', 'waiting-children')]: stands(60),
    [name('trawl_queue_oldest_age_seconds', 'queue="scrape"')]: always(0),
    [name('trawl_runs_in_flight', 'server="apify"')]: stands(20),
    [name('trawl_run_slots', 'server="apify"')]: always(20),
    [name('trawl_server_up', 'server="apify"')]: always(1),
    ...Object.fromEntries(reasons.map((reason) => [held(reason), always(0)])),
    [name('trawl_redis_memory_used_bytes')]: always(200 * mega),
    [name('trawl_redis_memory_max_bytes')]: always(1_000 * mega),
    [name('trawl_redis_evicted_keys_total')]: always(0),
    [fetched('scrape')]: clock(all),
    [fetched('start-apify')]: clock(all),
  };
}

/** Three hours of a good night. */
export const night = fleet([180, 1]);
/** Bad from minute 60 to 120 of it. */
export const between = (good: number, bad: number): Values => counter([60, good], [60, bad], [60, good]);
/** What a fleet without load shows when a server is held: it waits and starts nothing. */
export const stopped: SeriesSet = {
  [settled('succeeded')]: between(8.8, 0),
  [settled('empty')]: between(0.5, 0),
  [settled('failed')]: between(0.7, 0),
};
export const silent = (...at: number[]) => at.map((each) => ({ at: each, firing: [] }));

/** Every series of a set as it is up to a minute, and gone from then on. */
export function until(minute: number, series: SeriesSet): SeriesSet {
  return Object.fromEntries(
    Object.entries(series).map(([each, values]) => [
      each,
      (step: number) => `${cut(values(step), Math.round(minute / step))} stale`,
    ]),
  );
}

/** Every series of a set, seen from a minute on. */
export function from(minute: number, series: SeriesSet): SeriesSet {
  return Object.fromEntries(
    Object.entries(series).map(([each, values]) => [
      each,
      (step: number) => `_x${Math.round(minute / step)} ${values(step)}`,
    ]),
  );
}

/** The first samples of promtool's notation. */
function cut(values: string, samples: number): string {
  let left = samples;
  const kept: string[] = [];
  for (const part of values.split(' ')) {
    if (left <= 0) break;
    const [head = '', count] = part.split('x');
    const length = count === undefined ? 1 : head === '_' ? Number(count) : Number(count) + 1;
    const take = Math.min(left, length);
    kept.push(count === undefined ? part : head === '_' ? `_x${take}` : `${head}x${take - 1}`);
    left -= take;
  }
  return kept.join(' ');
}
