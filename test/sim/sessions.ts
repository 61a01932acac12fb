import { randomUUID } from 'node:crypto';
import type { Call } from './call.js';
import type { Toolset } from './toolset.js';

/** An MCP session: which tools its URL selected, and its calls under way by request id. */
export interface Session {
  readonly id: string;
  readonly toolset: Toolset;
  readonly calls: Map<string | number, Call>;
}

/** Sessions by id, bounded: the oldest gives way, as on a server that restarts now and then. */
export class Sessions {
  readonly #byId = new Map<string, Session>();
  readonly #most: number;

  constructor(most: number) {
    this.#most = most;
  }

  open(toolset: Toolset): Session {
    const session: Session = { id: randomUUID(), toolset, calls: new Map() };
    this.#byId.set(session.id, session);
    if (this.#byId.size > this.#most) {
      const oldest = this.#byId.keys().next().value;
      if (oldest !== undefined) this.#byId.delete(oldest);
    }
    return session;
  }

  get(id: string): Session | undefined {
    return this.#byId.get(id);
  }

  drop(id: string): boolean {
    return this.#byId.delete(id);
  }

  /** Every session is forgotten: their next calls get 404. Runs live on. */
  dropAll(): number {
    const dropped = this.#byId.size;
    this.#byId.clear();
    return dropped;
  }

  get size(): number {
    return this.#byId.size;
  }

  all(): Session[] {
    return [...this.#byId.values()];
  }
}
