import type { FastifyInstance } from 'fastify';
import { TrawlError } from '../../errors.js';
import type { Access, Wish } from '../access.js';
import { addBoardSession } from '../board-session.js';
import type { HttpParts } from '../parts.js';
import { addChangingRoutes } from './changing.js';
import { answerErrors } from './errors.js';
import { addLookingRoutes } from './looking.js';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** What the route gives or does; a route that does not say is refused. */
    wish?: Wish;
  }
}

/** With Redis away a command waits until it is back; somebody who looks does not. */
const answerMs = 8_000;

/** Mounts `/api/v1` (docs/api.md). Later versions get a path of their own, this one stays. */
export function mountApi(parts: HttpParts, access: Access): (app: FastifyInstance) => Promise<void> {
  return async (root) => {
    await root.register(
      async (app) => {
        answerErrors(app, parts.log);
        app.addHook('onRequest', async (request, reply) => {
          reply.header('cross-origin-resource-policy', 'same-origin');
          access.checkSource(request);
          await access.checkToken(request, request.routeOptions.config?.wish ?? 'change');
          if (parts.redis.status !== 'ready') throw redisAway();
        });
        app.addHook('onRoute', (route) => {
          const handler = route.handler;
          const late = (route.config?.wish ?? 'change') === 'change' ? changeUnknown : redisAway;
          route.handler = function (request, reply) {
            return within(handler.call(this, request, reply) as Promise<unknown>, late);
          };
        });
        addLookingRoutes(app, parts, access);
        addChangingRoutes(app, parts);
        await addBoardSession(app, parts);
      },
      { prefix: '/api/v1' },
    );
  };
}

async function within(work: Promise<unknown>, tooLate: () => TrawlError): Promise<unknown> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(tooLate()), answerMs);
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}

/** Nothing has been asked of it yet, or nothing that changes anything. */
function redisAway(): TrawlError {
  return new TrawlError(
    'redis_unreachable',
    'Redis does not answer; nothing can be looked up, and nothing was changed.',
    { hint: 'Trawl goes on by itself when it is back.' },
  );
}

/** A command that has been sent is carried out whenever Redis is back, though nobody waits for its answer any more. */
function changeUnknown(): TrawlError {
  return new TrawlError(
    'redis_unreachable',
    'Redis does not answer: the change may have been made, or may be made when it is back.',
    { hint: 'Look how things stand before you ask for it again.' },
  );
}
