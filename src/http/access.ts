import { createHash, timingSafeEqual } from 'node:crypto';
import { isIP } from 'node:net';
import type { FastifyRequest } from 'fastify';
import { RateLimiterMemory, RateLimiterRes } from 'rate-limiter-flexible';
import type { Config } from '../config.js';
import { TrawlError } from '../errors.js';
import type { HttpParts } from './parts.js';

/**
 * What a request wants. `look`: how things stand. `items`: scraped data and the queues' jobs. `change`: anything else
 * than looking.
 */
export type Wish = 'look' | 'items' | 'change';

/** So many wrong tokens from one address, then none is looked at for the rest of the minute. */
const wrongTokens = 10;
const wrongTokensSeconds = 60;

/**
 * Who may do what over HTTP.
 *
 * - A browser on this machine can be made to ask us by any site it shows. So the `Host` has to be an address, `localhost` or a
 *   configured name (a name that an attacker points at us, DNS rebinding, is none of these), and what the browser says of the
 *   request's origin has to be ourselves. No answer allows another origin to read it.
 * - With a token everything needs it, looking too: messages and ids may hold what was scraped. Without one, looking works where
 *   only this machine can ask, and items, the queue board and changes do not: results are readable by their user alone,
 *   and a port on loopback is open to every user of the machine.
 */
export class Access {
  readonly #token: Buffer | null;
  readonly #failures = new RateLimiterMemory({ points: wrongTokens, duration: wrongTokensSeconds });

  constructor(
    private readonly http: Config['http'],
    private readonly log: HttpParts['log'],
  ) {
    this.#token = http.token === null ? null : digest(http.token);
  }

  /** What somebody without a token, or with the right one, may do. */
  describe(): { readonly token: boolean; readonly look: boolean } {
    return { token: this.#token !== null, look: this.#token === null && isLoopback(this.http.host) };
  }

  /**
   * @param link a page that is opened, which may happen from anywhere
   * @throws TrawlError `http_host_refused`, `http_origin_refused`: somebody else's page makes the browser ask
   */
  checkSource(request: FastifyRequest, link = false): void {
    const host = request.headers.host ?? '';
    if (!this.#isOurs(host)) {
      throw new TrawlError('http_host_refused', 'This is not a name under which Trawl may be asked.', {
        hint: 'Use its address or localhost, or add the name to http.names in trawl.yaml.',
      });
    }
    const { origin, 'sec-fetch-site': site } = request.headers;
    const foreign =
      (origin !== undefined && hostOf(origin) !== host.toLowerCase()) ||
      (!link && site !== undefined && site !== 'same-origin' && site !== 'none');
    if (foreign) {
      throw new TrawlError('http_origin_refused', 'A page of another origin may not ask for this.', {
        hint: "Open Trawl's own page, or ask from a program.",
      });
    }
  }

  /** @throws TrawlError `http_token_unset`, `http_token_missing`, `http_token_wrong`, `http_too_many` */
  async checkToken(request: FastifyRequest, wish: Wish): Promise<void> {
    if (this.#token === null) {
      if (wish === 'look' && isLoopback(this.http.host)) return;
      throw unset(wish);
    }
    const given = /^Bearer +([!-~]{1,8192})$/i.exec(request.headers.authorization ?? '')?.[1];
    if (given === undefined) {
      throw new TrawlError('http_token_missing', 'This needs the token that http.token sets.', {
        hint: 'Send it as a header: Authorization: Bearer TOKEN',
      });
    }
    await this.compare(given, addressOf(request));
  }

  /** Compares in constant time. @throws TrawlError `http_token_unset`, `http_token_wrong`, `http_too_many` */
  async compare(given: string, address: string): Promise<void> {
    if (this.#token === null) throw unset('change');
    const key = addressKey(address);
    const state = await this.#failures.get(key);
    if (state !== null && state.consumedPoints >= wrongTokens) throw tooMany(state);
    if (timingSafeEqual(digest(given), this.#token)) return;
    try {
      await this.#failures.consume(key);
    } catch (error) {
      if (error instanceof RateLimiterRes) throw tooMany(error);
      throw error;
    }
    // The token itself is never logged, also not a wrong one: it may be right but for a letter.
    this.log.warn({ event: 'http.token_refused', address }, 'a wrong token was refused');
    throw new TrawlError('http_token_wrong', 'That is not the token of http.token.');
  }

  #isOurs(host: string): boolean {
    const name = nameOf(host);
    if (name === null) return false;
    const known = ['localhost', this.http.host, ...this.http.names].map((each) => each.toLowerCase());
    return isIP(name) !== 0 || known.includes(name);
  }
}

function unset(wish: Wish): TrawlError {
  const what = {
    look: 'shown beyond this machine',
    items: 'shown of items and queues',
    change: 'changed over HTTP',
  }[wish];
  return new TrawlError('http_token_unset', `No token is configured, so nothing can be ${what}.`, {
    hint: 'Set http.token in trawl.yaml, or TRAWL_HTTP__TOKEN in its environment, and start Trawl again.',
  });
}

function tooMany(state: RateLimiterRes): TrawlError {
  const seconds = Math.max(1, Math.ceil(state.msBeforeNext / 1000));
  return new TrawlError('http_too_many', 'Too many wrong tokens came from this address.', {
    hint: `Try again in ${seconds} s.`,
  });
}

/** Where a request comes from, by the word of a trusted proxy; what that passes on and is no address counts as its own. */
export function addressOf({ ip, socket }: FastifyRequest): string {
  return isIP(ip) === 0 ? (socket.remoteAddress ?? '') : ip;
}

const digest = (text: string): Buffer => createHash('sha256').update(text).digest();

export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || (isIP(host) === 4 && host.startsWith('127.'));
}

/** The name in a Host header, without port and brackets, in lower case; null when it is none. */
function nameOf(host: string): string | null {
  const match = /^(?:\[([0-9a-f:.]{2,45})\]|([a-z0-9._-]{1,253}))(?::\d{1,5})?$/i.exec(host);
  return (match?.[1] ?? match?.[2])?.toLowerCase() ?? null;
}

/** `host[:port]` of an Origin header; '' for `null` and whatever else is no origin. A proxy may speak TLS for us. */
function hostOf(origin: string): string {
  return /^https?:\/\/([^/]+)$/i.exec(origin)?.[1]?.toLowerCase() ?? '';
}

/** An IPv6 customer has a whole /64 of addresses. */
function addressKey(address: string): string {
  if (isIP(address) !== 6 || address.startsWith('::ffff:')) return address;
  const [head = '', tail] = address.split('::');
  const groups = head === '' ? [] : head.split(':');
  const after = tail === undefined || tail === '' ? 0 : tail.split(':').length;
  // `::` stands for as many groups of zeros as are missing.
  if (tail !== undefined) groups.push(...Array.from({ length: 8 - groups.length - after }, () => '0'));
  return groups.slice(0, 4).join(':');
}
