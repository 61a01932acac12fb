import { setTimeout as delay } from 'node:timers/promises';
import { withoutVariables } from '../../../grafana/src/dashboards/panel.js';
import { specs } from '../../../grafana/src/dashboards.js';
import { healthSource } from '../../../src/http/health.js';
import { createHttpServer } from '../../../src/http/server.js';
import { createMetrics } from '../../../src/metrics/index.js';
import { PrometheusProcess } from '../../alerts/prometheus-process.js';
import { Bench, maps, yellowPages } from '../../workers/harness.js';

/**
 * `npm run panels`: a daemon works through a small batch at the simulator, a real Prometheus watches, and every query of every
 * panel is asked. Prints a table; exits with 1 when a panel that should have data has none.
 */
const scrapes = 60;
/** Long enough for a window of 15 minutes, at a sixtieth. */
const watchedMs = 25_000;

async function main(): Promise<number> {
  const bench = await Bench.open();
  const metrics = createMetrics({
    version: '0.1.0',
    servers: { apify: { tools: [yellowPages, maps] } },
    process: true,
  });
  const daemon = await bench.daemon({ metrics });
  metrics.onCollect(() => {
    for (const [queue, at] of daemon.ctx.liveness.lastFetch) metrics.workerFetched(queue, at);
  });
  const http = await createHttpServer({
    host: '127.0.0.1',
    port: 0,
    metrics,
    health: { live: healthSource({}), ready: healthSource({}) },
    log: daemon.ctx.log,
  });
  const prometheus = await PrometheusProcess.start({
    targets: [new URL(http.url).host],
    windowFactor: 1 / 60,
  });
  try {
    // Prometheus has to have seen the zeros before the first scrape ends.
    await delay(2_500);
    for (let index = 0; index < scrapes; index += 1) {
      const sim = { runSecs: 1 + (index % 5), items: index % 12 === 0 ? 0 : 20, usageUsd: 0.01 };
      await bench.add(`panel-${index}`, { input: { sim } });
      await delay(watchedMs / scrapes);
    }
    return await report(prometheus);
  } finally {
    await prometheus.stop();
    await http.close();
    await bench.close();
  }
}

async function report(prometheus: PrometheusProcess): Promise<number> {
  let without = 0;
  let asked = 0;
  for (const { title: dashboard, panels } of specs) {
    for (const { title, queries, onlyOnIncident } of panels) {
      const found = await Promise.all(
        queries.map(([expr]) => prometheus.query(withoutVariables(expr, '10s'))),
      );
      asked += queries.length;
      // One of the queries of a panel may concern incidents while the others do not.
      const empty = found.some((samples) => samples.every(({ value }) => Number.isNaN(value)));
      const verdict = empty
        ? onlyOnIncident === undefined
          ? 'NO DATA'
          : `only on incident: ${onlyOnIncident}`
        : 'data';
      if (verdict === 'NO DATA') without += 1;
      const series = found.map((samples) => samples.length).join('+');
      process.stdout.write(`${dashboard.padEnd(26)} ${title.padEnd(52)} ${series.padStart(8)}  ${verdict}\n`);
    }
  }
  const firing = await prometheus.query('ALERTS{alertstate="firing"}');
  process.stdout.write(`Alerts meanwhile: ${firing.map(({ labels }) => labels.alertname).join(', ')}.\n`);
  process.stdout.write(`${asked} queries; ${without} panels without the data they should have.\n`);
  return without === 0 ? 0 : 1;
}

process.exitCode = await main();
