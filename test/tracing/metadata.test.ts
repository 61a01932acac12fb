import { expect, test } from 'vitest';
import { readMetadata } from '../../src/tracing/metadata.js';

const parent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';

test('what bullmq-otel writes is taken, and nothing else with it', () => {
  expect(readMetadata(JSON.stringify({ traceparent: parent }))).toBe(`{"traceparent":"${parent}"}`);
  const more = { traceparent: parent, tracestate: 'a=1', baggage: 'secret=1', x: {} };
  expect(readMetadata(JSON.stringify(more))).toBe(`{"traceparent":"${parent}","tracestate":"a=1"}`);
});

test.each([
  ['nothing', undefined],
  ['no text', { traceparent: parent }],
  ['no JSON', '{"traceparent'],
  ['null', 'null'],
  ['a list', '[]'],
  ['no traceparent', '{}'],
  ['a list of them', JSON.stringify({ traceparent: [parent] })],
  ['a trace of zeros', JSON.stringify({ traceparent: `00-${'0'.repeat(32)}-b7ad6b7169203331-01` })],
  ['a span of zeros', JSON.stringify({ traceparent: `00-${'a'.repeat(32)}-${'0'.repeat(16)}-01` })],
  ['capitals', JSON.stringify({ traceparent: parent.toUpperCase() })],
  ['version ff', JSON.stringify({ traceparent: parent.replace(/^00/, 'ff') })],
  ['more behind it', JSON.stringify({ traceparent: `${parent}\n` })],
  ['too long', JSON.stringify({ traceparent: parent, pad: 'x'.repeat(3_000) })],
])('%s is none', (_what, metadata) => {
  expect(readMetadata(metadata)).toBeNull();
});

test('a trace state that no header could hold is left out', () => {
  const metadata = JSON.stringify({ traceparent: parent, tracestate: 'a=1\r\nx: y' });
  expect(readMetadata(metadata)).toBe(`{"traceparent":"${parent}"}`);
});
