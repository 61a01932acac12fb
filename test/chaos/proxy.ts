import { once } from 'node:events';
import { createServer, type Server, type Socket, connect as tcpConnect } from 'node:net';

interface Pair {
  readonly near: Socket;
  readonly far: Socket;
  stalled: boolean;
}

/** A TCP proxy that can cut connections, and let them stand still: bytes then wait, and nobody is told. */
export class TcpProxy {
  private readonly pairs = new Set<Pair>();
  /** Share of new connections that stand still at once. */
  private stalledShare = 0;
  private losesReply = false;

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

  /** Resets a share of the connections there are; new ones are let through. */
  cut(share: number): void {
    for (const { near, far } of this.some(share)) {
      near.resetAndDestroy();
      far.resetAndDestroy();
    }
  }

  /** A share of the connections stands still, of later ones too, until `resume`. */
  stall(share: number): void {
    this.stalledShare = share;
    for (const pair of this.some(share)) {
      pair.stalled = true;
      pair.near.pause();
      pair.far.pause();
    }
  }

  /** What waited goes on its way. */
  resume(): void {
    this.stalledShare = 0;
    for (const pair of this.pairs) {
      if (!pair.stalled) continue;
      pair.stalled = false;
      pair.near.resume();
      pair.far.resume();
    }
  }

  /** The next answer is lost with its connection: what was asked has been done, and nobody hears of it. */
  loseNextReply(): void {
    this.losesReply = true;
  }

  async close(): Promise<void> {
    this.server.close();
    this.cut(1);
    await once(this.server, 'close');
  }

  private some(share: number): Pair[] {
    return [...this.pairs].filter(() => Math.random() < share);
  }

  private join(near: Socket, targetPort: number): void {
    const far = tcpConnect({ port: targetPort, host: '127.0.0.1' });
    const pair = { near, far, stalled: Math.random() < this.stalledShare };
    this.pairs.add(pair);
    this.carry(pair, near, far);
    this.carry(pair, far, near);
    if (pair.stalled) far.pause();
    else near.resume();
  }

  private carry(pair: Pair, from: Socket, to: Socket): void {
    from.setNoDelay(true);
    from.on('data', (chunk) => {
      if (this.losesReply && from === pair.far) {
        this.losesReply = false;
        pair.near.resetAndDestroy();
        pair.far.resetAndDestroy();
        return;
      }
      if (to.write(chunk)) return;
      from.pause();
      to.once('drain', () => {
        if (!pair.stalled) from.resume();
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
