import type { Span, Telemetry } from 'bullmq';
import { readMetadata } from './metadata.js';

/** The operations of BullMQ worth a span: a job is added, a job is worked on. */
const kept = /^(add|process) /;

/**
 * bullmq-otel's telemetry without what does not belong in a trace of a scrape: BullMQ makes a span of each look into an empty
 * queue, each renewal of locks, each delay; it writes a job's result and the text of its errors into events; and it parses
 * a job's trace context unseen.
 */
export function leanTelemetry({ tracer, contextManager }: Telemetry): Telemetry {
  return {
    tracer: {
      startSpan(name, options, context) {
        return kept.test(name) ? withoutTexts(tracer.startSpan(name, options, context)) : noSpan;
      },
    },
    contextManager: {
      with: (context, work) => contextManager.with(context, work),
      active: () => contextManager.active(),
      getMetadata: (context) => contextManager.getMetadata(context),
      fromMetadata(active, metadata) {
        const read = readMetadata(metadata);
        return read === null ? active : contextManager.fromMetadata(active, read);
      },
    },
  };
}

const noSpan: Span = {
  setSpanOnContext: (context) => context,
  setAttribute() {},
  setAttributes() {},
  addEvent() {},
  recordException() {},
  end() {},
};

function withoutTexts(span: Span): Span {
  return {
    setSpanOnContext: (context) => span.setSpanOnContext(context),
    setAttribute: (key, value) => span.setAttribute(key, value),
    setAttributes: (attributes) => span.setAttributes(attributes),
    addEvent() {},
    recordException() {},
    end: () => span.end(),
  };
}
