import { once } from 'node:events';
import { createServer, type Server, type Socket, connect as tcpConnect } from 'node:net';

interface Pair {
  readonly near: Socket;
  readonly far: Socket;
}

/** A TCP proxy that can cut its connections, and let them stand still: bytes then wait, and nobody is told. */
export class TcpProxy {
  private readonly pairs = new Set<Pair>();
  private stalled = false;

  private constructor(
    private readonly server: Server,
    readonly port: number,
  ) {}

  static async open(targetPort: number): Promise<TcpProxy> {
    const server = createServer({ pauseOnConnect: true });
    server.listen({ port: 0, host: '127.0.0.1', backlog: 1024 });
    await once(server, 'listening');
    const proxy = new TcpProxy(server, (server.address() as { port: number }).port);
    server.on('connection', (near) => proxy.join(near, targetPort));
    return proxy;
  }

  /** Resets every connection there is; new ones are let through. */
  cut(): void {
    for (const { near, far } of [...this.pairs]) {
      near.resetAndDestroy();
      far.resetAndDestroy();
    }
  }

  stall(): void {
    this.stalled = true;
    for (const { near, far } of this.pairs) {
      near.pause();
      far.pause();
    }
  }

  /** What waited goes on its way. */
  resume(): void {
    this.stalled = false;
    for (const { near, far } of this.pairs) {
      near.resume();
      far.resume();
    }
  }

  async close(): Promise<void> {
    this.server.close();
    this.cut();
    await once(this.server, 'close');
  }

  private join(near: Socket, targetPort: number): void {
    const far = tcpConnect({ port: targetPort, host: '127.0.0.1' });
    const pair = { near, far };
    this.pairs.add(pair);
    this.carry(pair, near, far);
    this.carry(pair, far, near);
    if (!this.stalled) near.resume();
    else far.pause();
  }

  private carry(pair: Pair, from: Socket, to: Socket): void {
    from.setNoDelay(true);
    from.on('data', (chunk) => {
      if (to.write(chunk)) return;
      from.pause();
      to.once('drain', () => {
        if (!this.stalled) from.resume();
      });
    });
    from.on('end', () => to.end());
    // A reset on one side is a reset on the other.
    from.on('error', () => to.resetAndDestroy());
    from.on('close', () => {
      to.destroy();
      this.pairs.delete(pair);
    });
  }
}
