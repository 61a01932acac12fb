import { operations } from '../../src/mcp/port.js';
import { createMetrics } from '../../src/metrics/index.js';
import { outcomes } from '../../src/scrape/types.js';

/** 5 servers with 10 tools each, everything said of each once, incidents included: more than a worker ever serves. */
export function fullMetrics() {
  const names = Array.from({ length: 5 }, (_, at) => `server-${at}`);
  const tools = Array.from({ length: 10 }, (_, at) => `user/tool-${at}`);
  const metrics = createMetrics({
    version: '0.1.0',
    servers: Object.fromEntries(names.map((name) => [name, { tools }])),
    process: true,
  });
  for (const server of names) {
    for (const operation of operations) {
      for (const result of ['ok', 'tool_error', 'protocol_error', 'timeout', 'rate_limited'] as const) {
        metrics.mcpRequest(server, operation, result, 1, -32602);
      }
    }
    for (const tool of tools) {
      metrics.scrapeSubmitted(server, tool);
      for (const outcome of outcomes) metrics.scrapeSettled(server, tool, outcome);
      metrics.runDuration(server, tool, 50);
      metrics.scrapeDuration(server, tool, 50);
      metrics.usage(server, tool, 1);
      metrics.toolHeld(server, tool, new Set(['brake']));
    }
    metrics.pollLateness(server, 1);
    metrics.serverHeld(server, new Set());
    metrics.serverUp(server, true);
    metrics.pageWritten(server, 'file', { items: 1, bytes: 1 });
    for (const stage of ['start', 'poll', 'pages', 'abort']) {
      const queue = `${stage}-${server}`;
      for (const state of ['waiting', 'prioritized', 'delayed', 'active', 'waiting-children', 'failed']) {
        metrics.queueJobs(queue, state, 1);
      }
      metrics.queueOldestAge(queue, 1);
      metrics.workerFetched(queue, 1);
      metrics.stalledJob(queue);
    }
  }
  return metrics;
}

export const seriesOf = (text: string): number =>
  text.split('\n').filter((line) => line !== '' && !line.startsWith('#')).length;
