import { Access } from './access.js';
import { mountApi } from './api/index.js';
import { mountBoard } from './board.js';
import { mountPage } from './page.js';
import type { HttpParts } from './parts.js';
import type { HttpServerOptions } from './server.js';

/** Everything for people and their programs beside metrics and health: the page, its API, the queue board. */
export function httpMounts(parts: HttpParts): NonNullable<HttpServerOptions['mounts']> {
  const access = new Access(parts.config.http, parts.log);
  return [mountPage(parts.log), mountApi(parts, access), mountBoard(parts, access)];
}
