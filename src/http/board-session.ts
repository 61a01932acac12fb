import { hkdfSync } from 'node:crypto';
import fastifyCookie from '@fastify/cookie';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import type { HttpParts } from './parts.js';

const cookieName = 'trawl_queues';
const sessionSeconds = 3600;

/**
 * What opens the queue board to a browser, which cannot send a bearer header when it follows a link: a cookie that is got with
 * the token, holds nothing but its end, and is signed with a key made of the token. Not HTTP basic: a browser would keep
 * the token itself until it is closed, and send it with requests that other sites cause. Any process with the same token
 * takes it; another token ends it.
 */
function signer(token: string) {
  const key = Buffer.from(hkdfSync('sha256', token, '', 'trawl queue board', 32));
  return new fastifyCookie.Signer(key, 'sha256');
}

/** Whether a request's cookies hold a session that has not ended. */
export function hasBoardSession(token: string, cookies: FastifyRequest['cookies'], now: number): boolean {
  const cookie = cookies[cookieName];
  if (cookie === undefined || cookie.length > 200) return false;
  const { valid, value } = signer(token).unsign(cookie);
  return valid && Number(value) > now && Number(value) <= now + sessionSeconds * 1000;
}

/** `POST /api/v1/board` with the token opens the board for an hour, `DELETE` closes it. */
export async function addBoardSession(
  app: FastifyInstance,
  parts: Pick<HttpParts, 'config' | 'now'>,
): Promise<void> {
  await app.register(fastifyCookie);
  const options = { path: '/queues', httpOnly: true, sameSite: 'strict' } as const;
  app.post('/board', { config: { wish: 'change' } }, async (_request, reply) => {
    const ends = parts.now() + sessionSeconds * 1000;
    const value = signer(parts.config.http.token as string).sign(String(ends));
    reply.setCookie(cookieName, value, { ...options, maxAge: sessionSeconds });
    return { opens: '/queues/', until: ends };
  });
  app.delete('/board', { config: { wish: 'change' } }, async (_request, reply) => {
    reply.clearCookie(cookieName, options);
    return { closed: true };
  });
}
