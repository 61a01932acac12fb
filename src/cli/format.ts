/** How numbers, money and times are written for people. */

/** `12,345` */
export function number(value: number): string {
  return Math.round(value).toLocaleString('en-US');
}

/** `1 scrape`, `12 scrapes` */
export function counted(value: number, noun: string): string {
  return `${number(value)} ${noun}${Math.round(value) === 1 ? '' : 's'}`;
}

/** Cents from a dollar on, else the first two digits that say something. */
export function money(usd: number): string {
  if (usd === 0) return '$0';
  return usd >= 1 ? `$${usd.toFixed(2)}` : `$${Number(usd.toPrecision(2))}`;
}

/** The two largest units: `1h3m`, `45s`. */
export function span(ms: number): string {
  const seconds = Math.max(0, Math.round(ms / 1000));
  const parts: [number, string][] = [
    [Math.floor(seconds / 86_400), 'd'],
    [Math.floor((seconds % 86_400) / 3_600), 'h'],
    [Math.floor((seconds % 3_600) / 60), 'm'],
    [seconds % 60, 's'],
  ];
  const first = parts.findIndex(([value]) => value > 0);
  if (first < 0) return '0s';
  return parts
    .slice(first, first + 2)
    .filter(([value]) => value > 0)
    .map(([value, unit]) => `${value}${unit}`)
    .join('');
}

/** `2026-12-02 14:03:22`, in the time of the machine. */
export function moment(ms: number): string {
  const date = new Date(ms);
  if (Number.isNaN(date.getTime())) return 'at an unknown time';
  const two = (value: number) => String(value).padStart(2, '0');
  const day = `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
  return `${day} ${clock(ms)}`;
}

/** `14:03:22` */
export function clock(ms: number): string {
  const date = new Date(ms);
  return [date.getHours(), date.getMinutes(), date.getSeconds()]
    .map((value) => String(value).padStart(2, '0'))
    .join(':');
}

/** Settled scrapes a second or minute, whichever reads better. */
export function rate(perSecond: number): string {
  if (perSecond >= 10) return `${number(perSecond)}/s`;
  if (perSecond >= 1) return `${perSecond.toFixed(1)}/s`;
  const perMinute = perSecond * 60;
  return perMinute >= 10 ? `${number(perMinute)}/min` : `${perMinute.toFixed(1)}/min`;
}
