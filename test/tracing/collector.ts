import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type Server } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';

export interface CollectedSpan {
  readonly name: string;
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId: string;
  readonly kind: number;
  readonly startMs: number;
  readonly endMs: number;
  readonly attributes: Readonly<Record<string, string | number | boolean>>;
  readonly events: number;
  /** Process that made it. */
  readonly instance: string;
}

type Value = { stringValue?: string; intValue?: number | string; doubleValue?: number; boolValue?: boolean };
type Pairs = readonly { key: string; value: Value }[];

const attributesOf = (pairs: Pairs = []) =>
  Object.fromEntries(
    pairs.map(({ key, value }) => [
      key,
      value.stringValue ?? value.boolValue ?? Number(value.intValue ?? value.doubleValue),
    ]),
  );

interface Otlp {
  resourceSpans: {
    resource: { attributes: Pairs };
    scopeSpans: {
      spans: {
        name: string;
        traceId: string;
        spanId: string;
        parentSpanId?: string;
        kind: number;
        startTimeUnixNano: string;
        endTimeUnixNano: string;
        attributes?: Pairs;
        events?: unknown[];
      }[];
    }[];
  }[];
}

/** A receiver of OTLP over HTTP as JSON. It can also be one that never answers, or that refuses. */
export class Collector {
  readonly spans: CollectedSpan[] = [];
  /** Everything that was ever sent, as it came. */
  raw = '';
  requests = 0;
  headers: IncomingHttpHeaders = {};
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();

  private constructor(mode: 'takes' | 'hangs' | 'refuses') {
    this.#server = createServer(async (request, response) => {
      this.requests += 1;
      this.headers = request.headers;
      if (mode === 'hangs') return;
      const chunks: Buffer[] = [];
      for await (const chunk of request) chunks.push(chunk as Buffer);
      if (mode === 'refuses') return void response.writeHead(503).end();
      const text = Buffer.concat(chunks).toString();
      if (request.method !== 'POST' || request.url !== '/v1/traces')
        return void response.writeHead(404).end();
      this.raw += text;
      this.#take(JSON.parse(text) as Otlp);
      response.writeHead(200, { 'content-type': 'application/json' }).end('{}');
    });
    this.#server.on('connection', (socket) => {
      this.#sockets.add(socket);
      socket.on('close', () => this.#sockets.delete(socket));
    });
  }

  static async start(mode: 'takes' | 'hangs' | 'refuses' = 'takes'): Promise<Collector> {
    const collector = new Collector(mode);
    collector.#server.listen(0, '127.0.0.1');
    await once(collector.#server, 'listening');
    return collector;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  named(name: string): CollectedSpan[] {
    return this.spans.filter((span) => span.name === name);
  }

  async stop(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    this.#server.close();
    await once(this.#server, 'close');
  }

  #take({ resourceSpans }: Otlp): void {
    for (const { resource, scopeSpans } of resourceSpans) {
      const instance = String(attributesOf(resource.attributes)['service.instance.id']);
      for (const span of scopeSpans.flatMap(({ spans }) => spans)) {
        this.spans.push({
          name: span.name,
          traceId: span.traceId,
          spanId: span.spanId,
          parentSpanId: span.parentSpanId ?? '',
          kind: span.kind,
          startMs: Number(BigInt(span.startTimeUnixNano) / 1_000_000n),
          endMs: Number(BigInt(span.endTimeUnixNano) / 1_000_000n),
          attributes: attributesOf(span.attributes),
          events: span.events?.length ?? 0,
          instance,
        });
      }
    }
  }
}
