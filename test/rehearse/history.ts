import { days, hours } from '../../grafana/src/scale.js';
import { settings } from '../../grafana/src/settings.js';
import { yellowPages } from './traffic.js';

/** The server that has been there for a week. */
export const seasoned = 'costs-run-away';
const usdPerRun = 0.05;
const runsPer6h = 200;

/**
 * What Prometheus had recorded in a week: the usual price of a run is only known after so long. A sample a minute, as
 * OpenMetrics text.
 */
export function usualWeek(windowFactor: number, now: number): string {
  const labels = `{server="${seasoned}",tool="${yellowPages}"}`;
  const spanSecs = (days(7) + settings.empty.historyBefore + hours(6)) * windowFactor;
  const from = Math.floor(now / 1_000 - spanSecs);
  const times: number[] = [];
  for (let at = from; at < now / 1_000 - 60; at += 60) times.push(at);
  const series = (name: string, value: number) =>
    [`# TYPE ${name} gauge`, ...times.map((at) => `${name}${labels} ${value} ${at}`)].join('\n');
  return `${[
    series('trawl:cost:usd_6h', usdPerRun * runsPer6h),
    series('trawl:runs:count_6h', runsPer6h),
    '# EOF',
  ].join('\n')}\n`;
}
