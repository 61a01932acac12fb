import type { FastifyInstance } from 'fastify';
import { cancelScrape } from '../../queue/cancel.js';
import { retryScrape } from '../../queue/retry.js';
import { scrapeStatus } from '../../queue/status.js';
import { jobKey } from '../../scrape/identity.js';
import type { HttpParts } from '../parts.js';
import { unknownScrape } from './looking.js';
import { attemptIn, scrapeIn, serverIn, toolIn } from './requests.js';

/** What a change led to, as a sentence for a person and a word for a program. */
interface Changed {
  readonly result: string;
  readonly message: string;
}

/** Routes that change something; each does what the command of its name does, and is logged. */
export function addChangingRoutes(app: FastifyInstance, parts: HttpParts): void {
  const { redis, keys, queues, store, servers, holds } = parts;
  const done = (action: string, about: Record<string, string | null>, changed: Changed): Changed => {
    parts.log.info({ event: 'http.changed', action, ...about, result: changed.result }, changed.message);
    return changed;
  };

  app.post('/scrapes/:batch/:id/cancel', { config: { wish: 'change' } }, async ({ params }) => {
    const { batch, id } = scrapeIn(params);
    const key = jobKey(batch, id);
    const scrape = await scrapeStatus(parts, batch, id);
    if (scrape === null) throw unknownScrape(batch, id);
    const result =
      scrape.outcome !== null ? 'settled' : await cancelScrape({ redis, keys, queues, store, servers }, key);
    if (result === 'unknown') throw unknownScrape(batch, id);
    const message =
      result === 'settled'
        ? `${key} is settled already; there is nothing to cancel.`
        : `Cancelling ${key}${scrape.attempt?.runId ? '; its run is aborted' : ''}.`;
    return done('cancel', { scrapeId: key }, { result, message });
  });

  app.post('/scrapes/:batch/:id/retry', { config: { wish: 'change' } }, async ({ params, body }) => {
    const { batch, id } = scrapeIn(params);
    const failed = attemptIn(body);
    const scrape = await scrapeStatus(parts, batch, id);
    if (scrape === null) throw unknownScrape(batch, id);
    const last = scrape.outcome?.attempt ?? scrape.attempt?.n ?? null;
    // A request that is sent again, by whoever lost its answer, must not pay for yet another run.
    if (failed !== null && failed !== last) {
      const message = `Attempt ${failed} of ${scrape.key} was tried again already; its last is ${last}.`;
      return done('retry', { scrapeId: scrape.key }, { result: 'superseded', message });
    }
    const retried = await retryScrape(queues, scrape);
    const message = {
      retrying: () => `Trying ${scrape.key} again: attempt ${'attempt' in retried ? retried.attempt : ''}.`,
      settled: () => `${scrape.key} did not fail: it keeps its outcome, and nothing is paid for again.`,
      under_way: () => `${scrape.key} is under way; there is nothing to try again.`,
      forgotten: () => `Redis has forgotten ${scrape.key}: submit its job again under another id or batch.`,
    }[retried.result]();
    return done('retry', { scrapeId: scrape.key }, { result: retried.result, message });
  });

  for (const verb of ['pause', 'resume'] as const) {
    app.post(`/servers/:server/${verb}`, { config: { wish: 'change' } }, async ({ params, body }) => {
      const server = serverIn(parts, (params as { server?: unknown }).server);
      const tool = toolIn(parts, server, body);
      const name = tool === null ? server : `${server}/${tool}`;
      const changed =
        verb === 'pause' ? await holds.pause(server, tool, parts.now()) : await holds.resume(server, tool);
      const message = changed
        ? `${verb === 'pause' ? 'Paused' : 'Resumed'} ${name}.`
        : `${name} is ${verb === 'pause' ? 'paused already' : 'not paused'}.`;
      const result = changed ? `${verb}d` : 'unchanged';
      return done(verb, { server, tool }, { result, message });
    });
  }
}
