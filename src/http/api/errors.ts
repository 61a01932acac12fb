import type { FastifyInstance, FastifyReply } from 'fastify';
import { type ErrorCode, TrawlError } from '../../errors.js';
import { SinkHeldError } from '../../sinks/contract.js';
import type { HttpParts } from '../parts.js';

/** HTTP status of each error the API answers with; documented in docs/errors.md. */
export const apiStatus = {
  usage_invalid: 400,
  scrape_unknown: 404,
  server_unknown: 404,
  page_unknown: 404,
  http_host_refused: 403,
  http_origin_refused: 403,
  http_token_unset: 403,
  http_token_missing: 401,
  http_token_wrong: 401,
  http_too_many: 429,
  redis_unreachable: 503,
  sink_unwritable: 503,
} as const satisfies Partial<Record<ErrorCode, number>>;

/** What every refusal of the API looks like. */
export interface ApiError {
  readonly error: { readonly code: string; readonly message: string; readonly hint?: string };
}

/** Answers of a scope that are errors: ours by their code, everything else without a word about our insides. */
export function answerErrors(app: FastifyInstance, log: HttpParts['log']): void {
  app.setNotFoundHandler((_request, reply) =>
    reply
      .code(404)
      .send(body('usage_invalid', 'There is no such route.', 'See docs/api.md for those there are.')),
  );
  app.setErrorHandler((error, request, reply) => {
    if (isRefusal(error)) return refuse(reply, error);
    const { statusCode } = error as { statusCode?: unknown };
    if (typeof statusCode === 'number' && statusCode >= 400 && statusCode < 500) {
      return reply.code(statusCode).send(body('usage_invalid', 'The request cannot be read.'));
    }
    log.error({ event: 'http.failed', err: error, route: request.routeOptions.url }, 'request failed');
    if (error instanceof SinkHeldError) {
      return refuse(
        reply,
        new TrawlError('sink_unwritable', 'The results cannot be read now; the log says why.'),
      );
    }
    return reply.code(500).send(body('internal', 'Trawl failed to answer; the log says why.'));
  });
}

export function isRefusal(error: unknown): error is TrawlError {
  return error instanceof TrawlError && Object.hasOwn(apiStatus, error.code);
}

/** Answers with an error of ours, code, sentence and advice. */
export function refuse(reply: FastifyReply, { code, message, hint }: TrawlError): FastifyReply {
  const status = apiStatus[code as keyof typeof apiStatus];
  if (status === 401) reply.header('www-authenticate', 'Bearer realm="trawl"');
  return reply.code(status).send(body(code, message, hint));
}

function body(code: string, message: string, hint?: string): ApiError {
  return { error: { code, message, ...(hint === undefined ? {} : { hint }) } };
}
