import fastifyCookie from '@fastify/cookie';
import type { Queue } from 'bullmq';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { redact } from '../config.js';
import { publicQueue } from '../queue/names.js';
import type { Access } from './access.js';
import { isRefusal, refuse } from './api/errors.js';
import { hasBoardSession } from './board-session.js';
import type { HttpParts } from './parts.js';

const path = '/queues';

/** Its own scripts, styles and pictures; inline styles, because it is drawn with them. Nothing from elsewhere. */
const policy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self' 'unsafe-inline'",
  "img-src 'self' data:",
  "font-src 'self'",
  "connect-src 'self'",
  "base-uri 'self'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ');

/**
 * Mounts Bull Board at `/queues`, for whoever has shown the token (`board-session.ts`). The queues of the stages are
 * read-only: their jobs are ours. In the public queue everything may be done that any BullMQ client may do.
 */
export function mountBoard(parts: HttpParts, access: Access): (app: FastifyInstance) => Promise<void> {
  return async (root) => {
    await root.register(
      async (app) => {
        await app.register(fastifyCookie);
        app.addHook('onRequest', (request, reply) => admit(parts, access, request, reply));
        app.addHook('onResponse', async (request, reply) => {
          if (request.method === 'GET' || request.method === 'HEAD') return;
          const { method, routeOptions, params } = request;
          const about = { method, route: routeOptions.url, params, status: reply.statusCode };
          parts.log.info({ event: 'http.board_changed', ...about }, 'a change was made on the queue board');
        });
        if (parts.config.http.token !== null) await addBoard(app, parts);
        // Nothing is behind these: asking for them says why.
        else for (const url of ['/', '/*']) app.all(url, async () => undefined);
      },
      { prefix: path },
    );
  };
}

async function admit(
  { config, now }: HttpParts,
  access: Access,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<unknown> {
  reply.header('content-security-policy', policy);
  const navigates = request.method === 'GET' && request.headers['sec-fetch-mode'] === 'navigate';
  const { token } = config.http;
  try {
    // A link from elsewhere brings no cookie and shows nothing; it may lead here.
    access.checkSource(request, navigates);
    if (token !== null && hasBoardSession(token, request.cookies, now())) return undefined;
    if (navigates) return reply.redirect('/#/queues', 303);
    await access.checkToken(request, 'items');
    return undefined;
  } catch (error) {
    // Bull Board's own handler would word it otherwise.
    if (isRefusal(error)) return refuse(reply, error);
    throw error;
  }
}

/** Loaded here and not at the top: commands that serve nothing need not wait for it. */
async function addBoard(app: FastifyInstance, { queues, config }: HttpParts): Promise<void> {
  const [{ createBullBoard }, { BullMQAdapter }, { FastifyAdapter }] = await Promise.all([
    import('@bull-board/api'),
    import('@bull-board/api/bullMQAdapter'),
    import('@bull-board/fastify'),
  ]);
  // Secrets get into no job; should a producer put one into an input, it is not shown on top of that.
  const clean = (value: unknown) => scrubbed(value, (text) => redact(text, config));
  const adapt = (queue: Queue) => {
    const inner = queue.name !== publicQueue;
    const description = inner
      ? "Trawl's own, read-only: cancel and retry on Trawl's page"
      : 'The public queue: one job a scrape';
    const adapter = new BullMQAdapter(queue, { readOnlyMode: inner, description });
    for (const field of ['data', 'returnValue', 'progress'] as const) adapter.setFormatter(field, clean);
    return adapter;
  };
  const serverAdapter = new FastifyAdapter();
  createBullBoard({
    queues: queues.all.map(adapt),
    serverAdapter,
    options: {
      uiConfig: {
        boardTitle: 'Trawl queues',
        hideRedisDetails: true,
        miscLinks: [{ text: "Trawl's page", url: '/' }],
      },
    },
  });
  serverAdapter.setBasePath(path);
  await app.register(serverAdapter.registerPlugin());
}

function scrubbed(value: unknown, scrub: (text: string) => string): unknown {
  if (value === undefined || value === null) return value;
  return JSON.parse(scrub(JSON.stringify(value))) as unknown;
}
