import type { Redis } from 'ioredis';
import type { Keys } from '../../src/queue/names.js';
import type { OutcomeDocument } from '../../src/scrape/types.js';

/** Scrape → what was told of it: `scrape.settled`, `scrape.started RUN`, `page.written ATTEMPT/PAGE`. */
export type Told = ReadonlyMap<string, readonly string[]>;

export async function readTold(redis: Redis, keys: Keys): Promise<Told> {
  const told = new Map<string, string[]>();
  for (const [, fields] of await redis.xrange(keys.events, '-', '+')) {
    const event = Object.fromEntries(
      fields.flatMap((name, index) => (index % 2 === 0 ? [[name, fields[index + 1]]] : [])),
    ) as Record<string, string>;
    const key = `${event.batch}.${event.id}`;
    const list = told.get(key) ?? [];
    list.push(labelOf(event));
    told.set(key, list);
  }
  return told;
}

function labelOf({ type = '', data = '{}' }: Record<string, string>): string {
  const { runId, attempt, page } = JSON.parse(data) as Record<string, unknown>;
  if (type === 'scrape.started') return `${type} ${runId}`;
  return type === 'page.written' ? `${type} ${attempt}/${page}` : type;
}

/** What the events of a settled scrape say that its document does not, or not once; nothing when all is well. */
export function wrongEvents(told: readonly string[], outcome: OutcomeDocument): string[] {
  const wrong = told.filter((label, index) => label !== 'scrape.settled' && told.indexOf(label) !== index);
  const faults = wrong.map((label) => `${label} was told twice`);
  if (outcome.runId !== null && !told.includes(`scrape.started ${outcome.runId}`)) {
    faults.push(`the start of ${outcome.runId} was not told`);
  }
  const pages = new Set(told.filter((label) => label.startsWith(`page.written ${outcome.attempt}/`))).size;
  if (pages !== outcome.pages) faults.push(`${pages} pages were told and ${outcome.pages} counted`);
  return faults;
}
