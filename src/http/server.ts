import Fastify, { type FastifyInstance, type FastifyReply } from 'fastify';
import type { Logger } from 'pino';
import { TrawlError } from '../errors.js';
import type { HealthSource } from './health.js';

export interface HttpServerOptions {
  readonly host: string;
  /** 0: any free port; the one taken is in `url`. */
  readonly port: number;
  /** Addresses, and blocks of them, whose `X-Forwarded-For` says who asks; absent: of nobody. */
  readonly trustedProxies?: readonly string[];
  readonly metrics: { readonly contentType: string; text(): Promise<string> };
  readonly health: {
    /** The process works: `/healthz`. An orchestrator restarts the process on 503, so Redis being away is no reason. */
    readonly live: HealthSource;
    /** The process can do its work now: `/readyz`. */
    readonly ready: HealthSource;
  };
  readonly log: Pick<Logger, 'error'>;
  /** Routes of other parts (page, API, board), each in a scope of its own. */
  readonly mounts?: readonly ((app: FastifyInstance) => Promise<void>)[];
}

const bodyBytes = 65_536;
const headerBytes = 8192;

/**
 * Serves `/metrics`, `/healthz` and `/readyz` (design A6), and what is mounted.
 * @throws TrawlError `http_listen_failed` when the address cannot be had
 */
export async function createHttpServer(
  options: HttpServerOptions,
): Promise<{ url: string; close(): Promise<void> }> {
  const app = Fastify({
    logger: false,
    trustProxy: [...(options.trustedProxies ?? [])],
    bodyLimit: bodyBytes,
    requestTimeout: 10_000,
    connectionTimeout: 30_000,
    keepAliveTimeout: 10_000,
    forceCloseConnections: 'idle',
    routerOptions: { maxParamLength: 300 },
    http: { maxHeaderSize: headerBytes, headersTimeout: 5000 },
  });
  app.server.maxConnections = 1000;
  secure(app, options.log);
  app.get('/metrics', async (_request, reply) => {
    reply.header('content-type', options.metrics.contentType);
    return options.metrics.text();
  });
  app.get('/healthz', (_request, reply) => report(reply, options.health.live));
  app.get('/readyz', (_request, reply) => report(reply, options.health.ready));
  for (const mount of options.mounts ?? []) await app.register(mount);
  const url = await listen(app, options.host, options.port);
  return { url, close: () => app.close() };
}

async function report(reply: FastifyReply, source: HealthSource): Promise<FastifyReply> {
  const health = await source.check();
  return reply.code(health.ok ? 200 : 503).send(health);
}

/** Headers on every answer, and errors that say nothing about our insides. A mounted part may set its own policy. */
function secure(app: FastifyInstance, log: HttpServerOptions['log']): void {
  app.addHook('onRequest', async (_request, reply) => {
    reply.headers({
      'x-content-type-options': 'nosniff',
      'x-frame-options': 'DENY',
      'referrer-policy': 'no-referrer',
      'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
      'cache-control': 'no-store',
    });
  });
  app.setNotFoundHandler((_request, reply) => reply.code(404).send({ error: 'not found' }));
  app.setErrorHandler((error, request, reply) => {
    const status = statusOf(error);
    if (status >= 500)
      log.error({ err: error, method: request.method, route: request.routeOptions.url }, 'request failed');
    return reply.code(status).send({ error: status >= 500 ? 'internal error' : 'bad request' });
  });
}

function statusOf(error: unknown): number {
  const status = error instanceof Error && 'statusCode' in error ? error.statusCode : undefined;
  return typeof status === 'number' && status >= 400 && status < 600 ? status : 500;
}

async function listen(app: FastifyInstance, host: string, port: number): Promise<string> {
  try {
    return await app.listen({ host, port });
  } catch (error) {
    await app.close();
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown error';
    throw new TrawlError(
      'http_listen_failed',
      `Cannot listen on ${host}:${port} (${code}): ${reasonOf(code)}`,
      {
        hint: 'Set http.host and http.port in trawl.yaml (or TRAWL_HTTP__PORT; 0 takes any free port).',
        cause: error,
      },
    );
  }
}

function reasonOf(code: string): string {
  switch (code) {
    case 'EADDRINUSE':
      return 'another program, perhaps another Trawl, has the port';
    case 'EACCES':
      return 'this user may not take that port';
    case 'EADDRNOTAVAIL':
    case 'ENOTFOUND':
      return 'this machine does not have that address';
    default:
      return 'the system refused';
  }
}
