import { setTimeout as delay } from 'node:timers/promises';
import type { PrometheusProcess } from '../alerts/prometheus-process.js';
import type { Labels, Notification, Webhook } from './webhook.js';

/** An alert that fired at Prometheus; `until` null: it still does. */
export interface Firing {
  readonly labels: Labels;
  readonly from: number;
  until: number | null;
}

export const nameOf = (labels: Labels): string => labels.alertname ?? '';
const watchdog = 'TrawlWatchdog';

/** Looks at what fires every second, beside what the webhook is told. The watchdog is left out of both. */
export class Watch {
  readonly firings: Firing[] = [];
  private readonly active = new Map<string, Firing>();
  private stopped = false;
  private readonly loop: Promise<void>;

  constructor(
    private readonly prometheus: PrometheusProcess,
    private readonly webhook: Webhook,
    private readonly onChange: (firing: Firing) => void,
  ) {
    this.loop = this.watch();
  }

  /** Notifications since then with an alert for which `mine` holds; of such alerts alone. */
  notified(since: number, mine: (labels: Labels) => boolean): Notification[] {
    return this.webhook.received
      .filter(({ at, receiver }) => at >= since && receiver !== 'heartbeat')
      .map((each) => ({ ...each, alerts: each.alerts.filter(({ labels }) => mine(labels)) }))
      .filter(({ alerts }) => alerts.length > 0);
  }

  fired(since: number, mine: (labels: Labels) => boolean): Firing[] {
    return this.firings.filter(({ labels, until }) => (until === null || until >= since) && mine(labels));
  }

  get heartbeats(): number[] {
    return this.webhook.received.filter(({ receiver }) => receiver === 'heartbeat').map(({ at }) => at);
  }

  async stop(): Promise<void> {
    this.stopped = true;
    await this.loop;
  }

  private async watch(): Promise<void> {
    while (!this.stopped) {
      await this.look().catch(() => {});
      await delay(500);
    }
  }

  private async look(): Promise<void> {
    const samples = await this.prometheus.query('ALERTS{alertstate="firing"}');
    const now = Date.now();
    const seen = new Set<string>();
    for (const { labels } of samples) {
      if (nameOf(labels) === watchdog) continue;
      const key = JSON.stringify(Object.entries(labels).sort());
      seen.add(key);
      if (this.active.has(key)) continue;
      const firing: Firing = { labels, from: now, until: null };
      this.active.set(key, firing);
      this.firings.push(firing);
      this.onChange(firing);
    }
    for (const [key, firing] of this.active) {
      if (seen.has(key)) continue;
      firing.until = now;
      this.active.delete(key);
      this.onChange(firing);
    }
  }
}
