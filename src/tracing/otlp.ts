import { hostname } from 'node:os';
import {
  type Context,
  context,
  DiagLogLevel,
  diag,
  propagation,
  ROOT_CONTEXT,
  SpanKind,
  SpanStatusCode,
  TraceFlags,
  trace,
} from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import { setGlobalErrorHandler, W3CTraceContextPropagator } from '@opentelemetry/core';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { resourceFromAttributes } from '@opentelemetry/resources';
import {
  BatchSpanProcessor,
  ParentBasedSampler,
  RandomIdGenerator,
  type ReadableSpan,
  SamplingDecision,
  type SpanExporter,
  TraceIdRatioBasedSampler,
  TracerProvider,
} from '@opentelemetry/sdk-trace';
import { BullMQOtel } from 'bullmq-otel';
import { createScrubber, type Scrubber } from '../config/scrub.js';
import { type Config, configSecrets } from '../config.js';
import type { Logger } from '../logger.js';
import { version } from '../version.js';
import { leanTelemetry } from './bullmq-telemetry.js';
import { Identifiers, idsOf } from './ids.js';
import type { SpanAttributes, Tracing } from './tracing.js';

/** Spans that wait to be sent. More are dropped: a collector that is away must cost neither memory nor time. */
const queuedSpans = 2_048;
const spansAtOnce = 512;
const patienceMs = 8_000;
const closeMs = 2_000;
/** A collector that is away is said to be so this often. */
const toldEveryMs = 60_000;

/**
 * OpenTelemetry over OTLP/HTTP. It registers itself for the whole process, since bullmq-otel knows no other way; one a process.
 * Only here is AsyncLocalStorage in use.
 *
 * @param sendMs how long the collector may take for a batch
 */
export function startTracing(config: Config, log: Logger, sendMs = patienceMs): Tracing {
  const scrubber = createScrubber(configSecrets(config));
  tellOfTrouble(log, scrubber);
  const ratio = new TraceIdRatioBasedSampler(config.traces.ratio);
  const ids = new Identifiers(new RandomIdGenerator());
  const exporter = new OTLPTraceExporter({
    url: `${config.traces.endpoint.replace(/\/+$/, '')}/v1/traces`,
    headers: readHeaders(config.traces.headers),
    timeoutMillis: sendMs,
  });
  const provider = new TracerProvider({
    sampler: new ParentBasedSampler({ root: ratio }),
    idGenerator: ids,
    // What a span says comes from our own code, names of jobs and queues aside; those are bounded here.
    spanLimits: { attributeValueLengthLimit: 256, attributeCountLimit: 32 },
    resource: resourceFromAttributes({
      'service.name': 'trawl',
      'service.version': version,
      'service.instance.id': `${hostname().slice(0, 64)}-${process.pid}`,
    }),
    spanProcessors: [
      new BatchSpanProcessor({
        exporter: scrubbed(exporter, scrubber),
        maxQueueSize: queuedSpans,
        maxExportBatchSize: spansAtOnce,
        exportTimeoutMillis: sendMs + 1_000,
      }),
    ],
  });
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
  propagation.setGlobalPropagator(new W3CTraceContextPropagator());
  trace.setGlobalTracerProvider(provider);
  const tracer = provider.getTracer('trawl', version);
  const metadataOf = (of: Context) => {
    const carrier: Record<string, string> = {};
    propagation.inject(of, carrier);
    return JSON.stringify(carrier);
  };

  return {
    bullmq: leanTelemetry(new BullMQOtel({ tracerName: 'trawl', version })),
    note(attributes) {
      trace.getActiveSpan()?.setAttributes(present(attributes));
    },
    span(name, attributes, work, seen) {
      if (trace.getActiveSpan() === undefined) return work();
      const options = { kind: SpanKind.CLIENT, attributes: present(attributes) };
      return tracer.startActiveSpan(name, options, async (span) => {
        try {
          const result = await work();
          if (seen !== undefined) span.setAttributes(present(seen(result)));
          return result;
        } catch (error) {
          span.setStatus({ code: SpanStatusCode.ERROR });
          throw error;
        } finally {
          span.end();
        }
      });
    },
    submitted(attributes) {
      const options = { kind: SpanKind.PRODUCER, root: true, attributes: present(attributes) };
      const span = tracer.startSpan('submit', options);
      span.end();
      return { metadata: metadataOf(trace.setSpan(ROOT_CONTEXT, span)) };
    },
    contextOf({ id, timestamp, taken }) {
      const own = idsOf(config.prefix, id, timestamp);
      const { decision } = ratio.shouldSample(ROOT_CONTEXT, own.traceId);
      const sampled = decision === SamplingDecision.RECORD_AND_SAMPLED;
      if (taken <= 1 && sampled) {
        const options = { kind: SpanKind.PRODUCER, root: true, startTime: timestamp };
        ids.using(own, () => tracer.startSpan('queued', options)).end();
      }
      const traceFlags = sampled ? TraceFlags.SAMPLED : TraceFlags.NONE;
      return metadataOf(trace.setSpanContext(ROOT_CONTEXT, { ...own, traceFlags, isRemote: true }));
    },
    async close() {
      let timer: NodeJS.Timeout | undefined;
      const late = new Promise<void>((resolve) => {
        timer = setTimeout(resolve, closeMs);
      });
      await Promise.race([provider.shutdown().catch(() => {}), late]);
      clearTimeout(timer);
      for (const api of [trace, context, propagation, diag]) api.disable();
    },
  };
}

function present(attributes: SpanAttributes): Record<string, string | number | boolean> {
  const kept: Record<string, string | number | boolean> = {};
  for (const [key, value] of Object.entries(attributes)) {
    if (value !== null && value !== undefined) kept[key] = value;
  }
  return kept;
}

/** `name=value,name=value`, percent-encoded, as in OTEL_EXPORTER_OTLP_HEADERS; the configuration has checked it. */
function readHeaders(text: string): Record<string, string> {
  const pairs = text.split(',').filter((pair) => pair.includes('='));
  return Object.fromEntries(
    pairs.map((pair) => {
      const at = pair.indexOf('=');
      return [pair.slice(0, at).trim(), decodeURIComponent(pair.slice(at + 1).trim())];
    }),
  );
}

/** Takes secrets out of whatever text a span holds, as the log does. */
function scrubbed(exporter: SpanExporter, scrubber: Scrubber): SpanExporter {
  return {
    export(spans: ReadableSpan[], done) {
      for (const { attributes } of spans) {
        for (const [key, value] of Object.entries(attributes)) {
          if (typeof value === 'string') attributes[key] = scrubber.scrub(value);
        }
      }
      exporter.export(spans, done);
    },
    shutdown: () => exporter.shutdown(),
    forceFlush: async () => exporter.forceFlush?.(),
  };
}

function tellOfTrouble(log: Logger, scrubber: Scrubber): void {
  let toldAt = Number.NEGATIVE_INFINITY;
  const tell = (text: string) => {
    const now = Date.now();
    if (now - toldAt < toldEveryMs) return;
    toldAt = now;
    const message = scrubber.scrub(text).slice(0, 300);
    log.warn({ event: 'traces.lost', message }, 'traces cannot be sent; scrapes go on without them');
  };
  setGlobalErrorHandler((error) => tell(error instanceof Error ? error.message : 'unknown'));
  const quiet = () => {};
  diag.setLogger(
    { error: tell, warn: tell, info: quiet, debug: quiet, verbose: quiet },
    { logLevel: DiagLogLevel.WARN, suppressOverrideMessage: true },
  );
}
