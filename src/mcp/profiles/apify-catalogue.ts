import type { Logger } from 'pino';
import type { ServerConfig } from '../../config.js';
import { makeFailure } from '../classify.js';
import type { CallFailure, CallResult, ServerDescription } from '../port.js';
import type { SessionPool } from '../session-pool.js';
import {
  describeTools,
  type ListedTool,
  missingHelpers,
  readTools,
  usualWaitSecsCap,
} from './apify-tools.js';

const maxToolPages = 50;
const maxTools = 10_000;

export interface CatalogueOptions {
  readonly server: ServerConfig;
  readonly pool: SessionPool;
  readonly log: Pick<Logger, 'warn'>;
  readonly timeoutMs: number;
  /** How long a list of tools is good for; one that lacks an allowed Actor is looked at again sooner. */
  readonly toolsFreshMs: number;
  readonly missingFreshMs: number;
}

interface Described {
  readonly value: ServerDescription;
  readonly generation: number;
  readonly at: number;
}

/**
 * What the server offers: its tools, listed once a session by one caller for all, checked for what Trawl needs, and
 * forgotten when they turn out to be out of date. A list that will not do is a failure and is never remembered.
 */
export class Catalogue {
  /** Largest `waitSecs`; lowered by the profile when a refusal says so. */
  waitSecsCap = usualWaitSecsCap;
  readonly #options: CatalogueOptions;
  #described: Described | null = null;
  /** The last list lacked something Trawl wants. */
  #lacking = false;
  #describing: Promise<CallResult<ServerDescription>> | null = null;

  constructor(options: CatalogueOptions) {
    this.#options = options;
  }

  async describe(
    options: { fresh?: boolean; signal?: AbortSignal } = {},
  ): Promise<CallResult<ServerDescription>> {
    const known = this.#described;
    if (known && !options.fresh && this.#isFresh(known)) return { ok: true, value: known.value };
    // One list for all who ask meanwhile, so one caller's signal ends his own waiting alone.
    this.#describing ??= this.#listTools().finally(() => {
      this.#describing = null;
    });
    return unlessAborted(this.#describing, options.signal);
  }

  forget(): void {
    this.#described = null;
  }

  async #listTools(): Promise<CallResult<ServerDescription>> {
    // A session keeps the tools it was opened with: an Actor or a token that is good by now is only seen by a new one.
    if (this.#lacking) this.#options.pool.renew();
    const listed: ListedTool[] = [];
    const cursors = new Set<string>();
    let cursor: string | null = null;
    do {
      const params: Record<string, unknown> = cursor === null ? {} : { cursor };
      const page: CallResult<NonNullable<ReturnType<typeof readTools>>> = await this.#options.pool.call({
        operation: 'list_tools',
        method: 'tools/list',
        params,
        timeoutMs: this.#options.timeoutMs,
        read: (answer) => {
          const value = readTools(answer);
          if (value !== null) return { ok: true, value };
          return {
            ok: false,
            failure: makeFailure('invalid_response', 'The tools list is none.', [this.#options.server.token]),
          };
        },
      });
      if (!page.ok) return page;
      for (const tool of page.value.tools) listed.push(tool);
      cursor = page.value.nextCursor;
      const circles = cursor !== null && (cursors.has(cursor) || cursors.size >= maxToolPages);
      if (circles || listed.length > maxTools) {
        const message = 'The tools list does not come to an end.';
        return { ok: false, failure: makeFailure('invalid_response', message, [this.#options.server.token]) };
      }
      if (cursor !== null) cursors.add(cursor);
    } while (cursor !== null);
    return this.#conclude(listed);
  }

  #conclude(listed: readonly ListedTool[]): CallResult<ServerDescription> {
    const value = describeTools(this.#options.server, listed, this.#options.pool.server);
    const lacking = missingHelpers(listed);
    const actors = Object.keys(this.#options.server.tools).join(', ');
    this.#described = null;
    this.#lacking = value.missing.length > 0 || lacking.length > 0;
    if (listed.length === 0 || value.tools.size === 0) {
      const what = listed.length === 0 ? 'an empty list of tools' : 'none of the allowed Actors';
      const message = `The server shows ${what} for ${actors}. Check the names (user/name) under servers.${this.#options.server.name}.tools and that the token is valid and may use them.`;
      return refuse('server', message);
    }
    if (lacking.length > 0) {
      const message = `The server does not show ${lacking.join(', ')}, which Trawl needs to follow a run and read its items.`;
      return refuse('server', message);
    }
    if (value.missing.length > 0) {
      this.#options.log.warn(
        { server: this.#options.server.name, missing: value.missing },
        'the server does not show some allowed Actors',
      );
    }
    this.waitSecsCap = value.waitSecsCap;
    this.#described = { value, generation: this.#options.pool.generation, at: performance.now() };
    return { ok: true, value };
  }

  #isFresh({ value, generation, at }: Described): boolean {
    const { toolsFreshMs, missingFreshMs } = this.#options;
    const goodFor = value.missing.length > 0 ? missingFreshMs : toolsFreshMs;
    return generation === this.#options.pool.generation && performance.now() - at < goodFor;
  }
}

/** A refusal of our own, before anything was sent. */
export function refuse(
  refusal: 'server' | 'tool' | 'scrape',
  message: string,
): { ok: false; failure: CallFailure } {
  const holdReason = refusal === 'scrape' ? null : 'tools_missing';
  return {
    ok: false,
    failure: makeFailure('tool_error', message, [], { refusal, holdReason, noEffect: true }),
  };
}

async function unlessAborted<T>(
  promise: Promise<CallResult<T>>,
  signal?: AbortSignal,
): Promise<CallResult<T>> {
  if (!signal) return promise;
  let onAbort: (() => void) | undefined;
  const aborted = new Promise<CallResult<T>>((resolve) => {
    onAbort = () => {
      const failure = makeFailure('timeout', 'The call was given up by its caller.', [], { noEffect: true });
      resolve({ ok: false, failure });
    };
    if (signal.aborted) onAbort();
    else signal.addEventListener('abort', onAbort, { once: true });
  });
  try {
    return await Promise.race([promise, aborted]);
  } finally {
    if (onAbort) signal.removeEventListener('abort', onAbort);
  }
}
