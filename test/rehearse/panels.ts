import { setTimeout as delay } from 'node:timers/promises';
import { withoutVariables } from '../../grafana/src/dashboards/panel.js';
import { specs } from '../../grafana/src/dashboards.js';
import type { PrometheusProcess } from '../alerts/prometheus-process.js';

export interface Asked {
  readonly panel: string;
  readonly expr: string;
  /** What was going on when it first returned data; null: it never has. */
  seenIn: string | null;
}

/** Queries of panels that have data only while something is wrong: asked again and again until each had some. */
export class IncidentPanels {
  readonly asked: Asked[] = specs.flatMap(({ title: dashboard, panels }) =>
    panels
      .filter(({ onlyOnIncident }) => onlyOnIncident !== undefined)
      .flatMap(({ title, queries }) =>
        queries.map(([expr]) => ({ panel: `${dashboard}: ${title}`, expr, seenIn: null })),
      ),
  );
  private stopped = false;
  private readonly loop: Promise<void>;

  /** @param underWay names of the incidents that are going on */
  constructor(
    private readonly prometheus: PrometheusProcess,
    private readonly underWay: () => readonly string[],
  ) {
    this.loop = this.askOn();
  }

  async stop(): Promise<void> {
    this.stopped = true;
    await this.loop;
  }

  private async askOn(): Promise<void> {
    while (!this.stopped) {
      for (const each of this.asked.filter(({ seenIn }) => seenIn === null)) {
        const samples = await this.prometheus.query(withoutVariables(each.expr, '15s')).catch(() => []);
        const found = samples.filter(({ value }) => !Number.isNaN(value));
        if (found.length === 0) continue;
        const servers = new Set(found.map(({ labels }) => labels.server ?? ''));
        const going = this.underWay();
        const ours = going.filter((name) => servers.has(name));
        each.seenIn = (ours.length > 0 ? ours : going).join(', ') || 'an ordinary time';
      }
      await delay(2_000);
    }
  }
}
