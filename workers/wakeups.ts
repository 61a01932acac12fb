import type { Redis } from 'ioredis';

/** Tells waiting gates that a slot of their server was released or a hold lifted. One subscription a process. */
export class Wakeups {
  private readonly counts = new Map<string, number>();
  private readonly waiting = new Map<string, Set<() => void>>();

  constructor(
    private readonly subscriber: Redis,
    private readonly channel: string,
  ) {}

  async start(): Promise<void> {
    this.subscriber.on('message', (_channel, server) => this.wake(server));
    await this.subscriber.subscribe(this.channel);
  }

  /** How often the server was woken so far; given back to `wait`, no wake-up in between is missed. */
  count(server: string): number {
    return this.counts.get(server) ?? 0;
  }

  /** Resolves on a wake-up since `seen`, or after `ms`. */
  async wait(server: string, ms: number, seen = this.count(server)): Promise<void> {
    if (this.count(server) !== seen || ms <= 0) return;
    await new Promise<void>((resolve) => {
      const waiters = this.waiting.get(server) ?? new Set();
      this.waiting.set(server, waiters);
      const done = () => {
        clearTimeout(timer);
        waiters.delete(done);
        resolve();
      };
      const timer = setTimeout(done, ms);
      waiters.add(done);
    });
  }

  /** Wakes everybody, for a shutdown. */
  wakeAll(): void {
    for (const server of this.waiting.keys()) this.wake(server);
  }

  private wake(server: string): void {
    this.counts.set(server, this.count(server) + 1);
    for (const done of [...(this.waiting.get(server) ?? [])]) done();
  }
}
