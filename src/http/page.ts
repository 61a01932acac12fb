import { readdir, readFile } from 'node:fs/promises';
import { extname } from 'node:path';
import type { FastifyInstance } from 'fastify';
import type { HttpParts } from './parts.js';

const types: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.svg': 'image/svg+xml',
};

/** Nothing inline, nothing from elsewhere, and no text can become a script or markup (Trusted Types). */
const policy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self'",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join('; ');

/**
 * Serves the page for people: the files of `page/` as they are, read once. They hold no data, so that anybody may have them;
 * what they show comes from the API.
 */
export function mountPage(log: HttpParts['log']): (app: FastifyInstance) => Promise<void> {
  return async (app) => {
    const folder = new URL('./page/', import.meta.url);
    for (const name of await namesIn(folder, log)) {
      const type = types[extname(name)];
      if (type === undefined) continue;
      const content = await readFile(new URL(name, folder));
      app.get(name === 'index.html' ? '/' : `/page/${name}`, async (_request, reply) =>
        reply
          .headers({
            'content-type': type,
            'content-security-policy': policy,
            'cross-origin-opener-policy': 'same-origin',
            'cross-origin-resource-policy': 'same-origin',
          })
          .send(content),
      );
    }
  };
}

/** A build without the page works on all the same: nobody's scrapes wait for a picture of them. */
async function namesIn(folder: URL, log: HttpParts['log']): Promise<string[]> {
  try {
    return await readdir(folder);
  } catch (error) {
    log.error(
      { event: 'http.page_missing', err: error },
      'this build lacks the page; npm run build copies it',
    );
    return [];
  }
}
