import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { ApifyApiStub, type StubActor } from './apify-api-stub.js';

const serverFile = join(
  import.meta.dirname,
  'servers/node_modules/@apify/actors-mcp-server/dist/dev_server.js',
);
/** About a second on an idle machine; a busy one may take long. */
const readyTimeoutMs = 60_000;
const keptLogBytes = 20_000;

/** The real Apify MCP server in a process of its own, in front of a stub of the API that tests steer. */
export class RealApifyServer {
  private output = '';

  private constructor(
    readonly stub: ApifyApiStub,
    private readonly port: number,
    private readonly child: ChildProcess,
  ) {
    const keep = (chunk: Buffer) => {
      this.output = (this.output + chunk.toString()).slice(-keptLogBytes);
    };
    child.stdout?.on('data', keep);
    child.stderr?.on('data', keep);
  }

  /** Starts both on free ports and resolves when the server answers. Any token will do. */
  static async start(actors?: readonly Omit<StubActor, 'id'>[]): Promise<RealApifyServer> {
    const stub = await ApifyApiStub.start(actors);
    const port = await freePort();
    const child = spawn(process.execPath, [serverFile], {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: {
        PATH: process.env.PATH,
        APIFY_API_BASE_URL: stub.url,
        TELEMETRY_ENABLED: 'false',
        PORT: String(port),
      },
    });
    const server = new RealApifyServer(stub, port, child);
    try {
      await server.ready();
      return server;
    } catch (error) {
      await server.stop();
      throw error;
    }
  }

  /** Of the endpoint without a query: clients add `?tools=`. */
  get url(): string {
    return `http://127.0.0.1:${this.port}/`;
  }

  /** The last that the server said, for a test that fails. */
  get log(): string {
    return this.output;
  }

  async stop(): Promise<void> {
    if (this.child.exitCode === null && this.child.signalCode === null) {
      const exit = once(this.child, 'exit');
      this.child.kill('SIGKILL');
      await exit;
    }
    await this.stub.stop();
  }

  private async ready(): Promise<void> {
    const deadline = Date.now() + readyTimeoutMs;
    for (;;) {
      if (this.child.exitCode !== null) throw new Error(`The MCP server ended: ${this.output}`);
      // It refuses a request without a session; any answer means that it listens.
      const answer = await fetch(this.url, { method: 'DELETE' }).catch(() => null);
      await answer?.body?.cancel();
      if (answer !== null) return;
      if (Date.now() > deadline) throw new Error(`The MCP server is not ready: ${this.output}`);
      await delay(50);
    }
  }
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as { port: number };
  server.close();
  await once(server, 'close');
  return port;
}
