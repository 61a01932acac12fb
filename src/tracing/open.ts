import type { Config } from '../config.js';
import type { Logger } from '../logger.js';
import { noTracing, type Tracing } from './tracing.js';

/** Traces as configured. Without `traces.endpoint` nothing of OpenTelemetry is loaded (prom-client brings its API, which does nothing by itself). */
export async function openTracing(config: Config, log: Logger): Promise<Tracing> {
  if (config.traces.endpoint === '') return noTracing;
  const { startTracing } = await import('./otlp.js');
  return startTracing(config, log);
}
