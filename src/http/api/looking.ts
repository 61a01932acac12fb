import type { FastifyInstance } from 'fastify';
import { TrawlError } from '../../errors.js';
import { countInProgress, listInProgress, progressStates } from '../../queue/in-progress.js';
import { LatestWarnings, listFailures, listWarnings } from '../../queue/problems.js';
import { publicBacklog, scrapeStatus, serverOverviews } from '../../queue/status.js';
import { PageReader } from '../../sinks/page-reader.js';
import { version } from '../../version.js';
import type { Access } from '../access.js';
import type { HttpParts } from '../parts.js';
import { timelineOf } from '../timeline.js';
import { cursorIn, known, scrapeIn, wholeIn, wordIn } from './requests.js';
import { problemView, progressView, scrapeView, serverView } from './views.js';

/** Entries of a list at once, most and without being asked. */
const most = 100;
const usual = 25;
const listed = { min: 1, max: most, fallback: usual };
/** Pages whose times a timeline shows, and a list of pages at once. */
const shownPages = 50;
/** Of a page at once. */
const partBytes = 262_144;
const maxOffset = 1_073_741_824;

/** Routes that look and change nothing. Each costs the same however much there is. */
export function addLookingRoutes(app: FastifyInstance, parts: HttpParts, access: Access): void {
  const { redis, keys, store, config, servers } = parts;
  const reader = new PageReader(config.results.dir);

  app.get('/overview', { config: { wish: 'look' } }, async () => {
    const [overviews, counts, notAccepted, workers] = await Promise.all([
      serverOverviews(parts, config.servers),
      countInProgress(parts, servers),
      publicBacklog(parts.queues),
      redis.exists(keys.leader),
    ]);
    return {
      now: parts.now(),
      version,
      writing: access.describe().token,
      worker: workers === 1,
      counts: { ...counts, submitted: notAccepted },
      servers: overviews.map(serverView),
    };
  });

  app.get('/scrapes', { config: { wish: 'look' } }, async ({ query }) => {
    const page = known(
      await listInProgress(
        { redis, keys, store },
        {
          servers,
          state: wordIn(query, 'state', progressStates, 'running'),
          cursor: cursorIn(query),
          limit: wholeIn(query, 'limit', listed),
        },
      ),
    );
    return { now: parts.now(), total: page.total, next: page.next, scrapes: page.scrapes.map(progressView) };
  });

  const latest = new LatestWarnings({ redis, keys });
  app.get('/problems', { config: { wish: 'look' } }, async ({ query }) => {
    const kind = wordIn(query, 'class', ['failure', 'warning'], 'failure');
    const cursor = cursorIn(query);
    const limit = wholeIn(query, 'limit', listed);
    const page = known(
      kind === 'failure'
        ? await listFailures({ redis, keys }, cursor, limit)
        : cursor === null
          ? await latest.list(limit)
          : await listWarnings({ redis, keys }, cursor, limit),
    );
    return { now: parts.now(), next: page.next, problems: page.outcomes.map(problemView) };
  });

  app.get('/scrapes/:batch/:id', { config: { wish: 'look' } }, async ({ params }) => {
    const { batch, id } = scrapeIn(params);
    const scrape = await scrapeStatus(parts, batch, id);
    if (scrape === null) throw unknownScrape(batch, id);
    const pages = await reader.list(batch, id, 0, shownPages);
    const looks = scrape.attempt?.looks ?? (await redis.get(keys.looks(scrape.key)));
    return {
      now: parts.now(),
      scrape: scrapeView(scrape),
      timeline: timelineOf(scrape, looks, pages),
    };
  });

  app.get('/scrapes/:batch/:id/pages', { config: { wish: 'look' } }, async ({ params, query }) => {
    const { batch, id } = scrapeIn(params);
    const from = wholeIn(query, 'from', { min: 0, max: 999_999, fallback: 0 });
    const limit = wholeIn(query, 'limit', { ...listed, fallback: shownPages });
    const pages = await reader.list(batch, id, from, limit);
    return { pages, next: pages.length < limit ? null : from + limit };
  });

  app.get(
    '/scrapes/:batch/:id/pages/:page',
    { config: { wish: 'items' } },
    async ({ params, query }, reply) => {
      const { batch, id } = scrapeIn(params);
      const index = wholeIn(params, 'page', { min: 0, max: 999_999 });
      const offset = wholeIn(query, 'offset', { min: 0, max: maxOffset, fallback: 0 });
      const part = await reader.read(batch, id, index, offset, partBytes);
      if (part === null) {
        throw new TrawlError('page_unknown', `${batch}.${id} has no page ${index}.`, {
          hint: 'A page that is not written yet comes when the run has ended.',
        });
      }
      if (part.next !== null) reply.header('trawl-next-offset', String(part.next));
      // Never as something a browser would act on: items are the server's words.
      return reply
        .header('content-type', 'text/plain; charset=utf-8')
        .header('content-security-policy', "default-src 'none'; frame-ancestors 'none'; sandbox")
        .send(part.data);
    },
  );
}

export function unknownScrape(batch: string, id: string): TrawlError {
  return new TrawlError('scrape_unknown', `No scrape "${id}" in batch ${batch} is known.`, {
    hint: 'What was settled long ago is among the results alone.',
  });
}
