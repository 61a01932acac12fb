import { readdir } from 'node:fs/promises';
import { TrawlError } from '../errors.js';
import { findScrapes, type ScrapeStatus, scrapeStatus } from '../queue/status.js';
import { cleanText } from '../scrape/clean-text.js';
import { isId, jobKey } from '../scrape/identity.js';
import type { Fleet } from './fleet.js';

/** Batches whose results are looked through for an id that Redis does not know. */
const maxBatches = 1_000;

/**
 * The one scrape that ID means: `<batch>.<id>`, or an id together with `--batch`, or an id that only one batch has.
 * @throws TrawlError `scrape_unknown`, `usage_invalid` when it names several
 */
export async function locate(fleet: Fleet, text: string, batch: string | undefined): Promise<ScrapeStatus> {
  const shown = cleanText(text, 130);
  const found = new Map<string, ScrapeStatus>();
  for (const place of [...(await findScrapes(fleet, text, batch)), ...(await onDisk(fleet, text, batch))]) {
    const key = jobKey(place.batch, place.id);
    if (found.has(key)) continue;
    const status = await scrapeStatus(fleet, place.batch, place.id);
    if (status !== null) found.set(key, status);
  }
  const [first, ...others] = found.values();
  if (first === undefined) {
    throw new TrawlError(
      'scrape_unknown',
      `No scrape "${shown}"${batch ? ` in batch ${batch}` : ''} is known.`,
      {
        hint: 'Name it as BATCH.ID, or give the batch with --batch; trawl status lists the batches.',
      },
    );
  }
  if (others.length > 0) {
    const names = [...found.keys()].slice(0, 10).join(', ');
    throw new TrawlError('usage_invalid', `"${shown}" names ${found.size} scrapes: ${names}.`, {
      hint: 'Give the batch with --batch.',
    });
  }
  return first;
}

/** Redis forgets what was settled long ago; its results stay. */
async function onDisk(
  { config, sink }: Fleet,
  text: string,
  batch: string | undefined,
): Promise<{ batch: string; id: string }[]> {
  if (batch !== undefined || !isId(text)) return [];
  const names = (await readdir(config.results.dir).catch(() => []))
    .filter((name) => /^batch=[A-Za-z0-9]/.test(name))
    .slice(0, maxBatches)
    .map((name) => name.slice('batch='.length));
  const found = await Promise.all(
    names.map(async (name) => ((await sink.find(name, text)) === null ? [] : [{ batch: name, id: text }])),
  );
  return found.flat();
}
