const units = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['m', 60_000],
  ['s', 1_000],
  ['ms', 1],
] as const;

export const minutes = (count: number): number => count * 60;
export const hours = (count: number): number => count * 3_600;
export const days = (count: number): number => count * 86_400;

/**
 * Every span of time in rules and Alertmanager's routes goes through here, so that the incident rehearsal can run a night
 * in minutes: one factor for all of them.
 */
export class Scale {
  constructor(readonly factor: number) {
    if (!(factor > 0 && factor <= 1))
      throw new RangeError(`windowFactor: expected above 0 to 1, got ${factor}`);
  }

  /** Seconds as they count now, for comparisons in a query. */
  seconds(span: number): number {
    return Math.max(1, Math.round(span * this.factor * 1_000)) / 1_000;
  }

  /** Seconds as a duration of PromQL: `15m`, `7d`, `1500ms`. */
  text(span: number): string {
    const ms = Math.round(this.seconds(span) * 1_000);
    for (const [unit, size] of units) if (ms % size === 0) return `${ms / size}${unit}`;
    throw new RangeError(`no duration: ${span}`);
  }
}
