import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Receiver } from '../../grafana/src/alertmanager.js';

export type Labels = Readonly<Record<string, string>>;

/** What Alertmanager sent: one group of alerts, to one receiver. */
export interface Notification {
  readonly at: number;
  readonly receiver: Receiver;
  readonly status: 'firing' | 'resolved';
  readonly alerts: readonly {
    readonly status: 'firing' | 'resolved';
    readonly labels: Labels;
    readonly annotations: Labels;
  }[];
}

const receivers: readonly Receiver[] = ['page', 'ticket', 'heartbeat'];

/** The other end of Alertmanager's receivers: writes down who would have been told of what. */
export class Webhook {
  readonly received: Notification[] = [];

  private constructor(private readonly server: Server) {}

  static async open(): Promise<Webhook> {
    const server = createServer();
    const webhook = new Webhook(server);
    server.on('request', (request, response) => {
      const chunks: Buffer[] = [];
      request.on('data', (chunk: Buffer) => chunks.push(chunk));
      request.on('end', () => {
        const receiver = receivers.find((name) => request.url === `/${name}`);
        if (receiver !== undefined) webhook.note(receiver, JSON.parse(Buffer.concat(chunks).toString()));
        response.writeHead(receiver === undefined ? 404 : 200).end();
      });
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    return webhook;
  }

  /** Integrations for the receivers of the configuration that is shipped, which have none. */
  get integrations(): Record<Receiver, object> {
    const { port } = this.server.address() as AddressInfo;
    const to = (name: Receiver) => ({
      webhook_configs: [{ url: `http://127.0.0.1:${port}/${name}`, send_resolved: name !== 'heartbeat' }],
    });
    return { page: to('page'), ticket: to('ticket'), heartbeat: to('heartbeat') };
  }

  async close(): Promise<void> {
    this.server.close();
    this.server.closeAllConnections();
    await once(this.server, 'close');
  }

  private note(receiver: Receiver, body: Pick<Notification, 'status' | 'alerts'>): void {
    this.received.push({ at: Date.now(), receiver, status: body.status, alerts: body.alerts });
  }
}
