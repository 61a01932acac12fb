/** W3C Trace Context, as bullmq-otel writes it into a job: a small JSON document with `traceparent`. */
const traceparent = /^(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}$/;
const tracestate = /^[\x20-\x7e]{1,512}$/;
const longest = 2_048;

/**
 * What a producer wrote as trace context, if it is one; null otherwise. Jobs come from outside, and BullMQ would hand whatever
 * stands there to a parser in the middle of its worker. Baggage and the like is left out: nothing of ours reads it.
 */
export function readMetadata(metadata: unknown): string | null {
  if (typeof metadata !== 'string' || metadata.length > longest) return null;
  let parsed: unknown;
  try {
    parsed = JSON.parse(metadata);
  } catch {
    return null;
  }
  if (typeof parsed !== 'object' || parsed === null) return null;
  const { traceparent: parent, tracestate: state } = parsed as Record<string, unknown>;
  if (typeof parent !== 'string' || !traceparent.test(parent)) return null;
  const kept = typeof state === 'string' && tracestate.test(state) ? { tracestate: state } : {};
  return JSON.stringify({ traceparent: parent, ...kept });
}
