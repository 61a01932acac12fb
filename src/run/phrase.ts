/** Words for the one plain sentence an outcome carries (design A4). */

/** `90000` → `1m30s`. */
export function duration(ms: number): string {
  const seconds = Math.max(0, Math.round(ms / 1000));
  if (seconds < 60) return `${seconds}s`;
  const parts: [number, string][] = [
    [Math.floor(seconds / 86_400), 'd'],
    [Math.floor((seconds % 86_400) / 3_600), 'h'],
    [Math.floor((seconds % 3_600) / 60), 'm'],
    [seconds % 60, 's'],
  ];
  return parts
    .filter(([value]) => value > 0)
    .slice(0, 2)
    .map(([value, unit]) => `${value}${unit}`)
    .join('');
}

export function count(value: number, noun: string): string {
  return `${value} ${noun}${value === 1 ? '' : 's'}`;
}

/** `$0.0042`, `$1.50`. */
export function usd(value: number): string {
  return `$${value >= 1 ? value.toFixed(2) : Number(value.toPrecision(3))}`;
}

/** A server's own words inside our sentence; empty when it said nothing. */
export function quoted(text: string | null): string {
  return text === null || text === '' ? '' : ` It said: "${text.replace(/"/g, "'").replace(/[.\s]+$/, '')}".`;
}

export function kept(items: number): string {
  if (items === 0) return 'it had no items.';
  return items === 1 ? 'its 1 item was kept.' : `its ${items} items were kept.`;
}

/** A name from outside that has to stay as it is elsewhere (a record's key), fit for a sentence on one line. */
export function plain(name: string): string {
  const line = name.slice(0, 320).replace(/[\p{C}\p{Zl}\p{Zp}]/gu, '');
  const characters = [...line];
  return characters.length > 80 ? `${characters.slice(0, 79).join('')}…` : line;
}
