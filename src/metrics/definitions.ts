import { Counter, Gauge, Histogram, type Registry } from 'prom-client';

/** Seconds; design A8. */
const longBuckets = [5, 10, 30, 60, 120, 300, 600, 1800, 3600, 14400];
/** Seconds. Few, because there is a set of them for each server and operation. */
const requestBuckets = [0.1, 0.25, 0.5, 1, 2.5, 5, 15, 60];
/** Seconds a poll came later than planned; 30 s is one whole default interval. */
const latenessBuckets = [0.1, 0.5, 1, 5, 15, 30, 60, 300];

/** Every metric of Trawl in one place (design A8): name, help, labels. */
export function defineMetrics(registry: Registry) {
  const registers = [registry];
  const counter = <L extends string>(name: string, help: string, labelNames: readonly L[]) =>
    new Counter<L>({ name: `trawl_${name}`, help, labelNames, registers });
  const gauge = <L extends string>(name: string, help: string, labelNames: readonly L[] = []) =>
    new Gauge<L>({ name: `trawl_${name}`, help, labelNames, registers });
  const histogram = <L extends string>(
    name: string,
    help: string,
    labelNames: readonly L[],
    buckets: number[],
  ) => new Histogram<L>({ name: `trawl_${name}`, help, labelNames, buckets, registers });

  return {
    scrapesSubmitted: counter('scrapes_submitted_total', 'Scrapes accepted.', ['server', 'tool']),
    scrapesDeduplicated: counter(
      'scrapes_deduplicated_total',
      'Submissions of a scrape that was known already.',
      ['server'],
    ),
    jobsInvalid: counter('jobs_invalid_total', 'Jobs refused before they became a scrape.', ['source']),
    scrapesSettled: counter(
      'scrapes_settled_total',
      'Scrapes that ended, by outcome; "empty" is a success without items.',
      ['server', 'tool', 'outcome'],
    ),
    mcpRequests: counter('mcp_requests_total', 'Calls to MCP servers by how they ended.', [
      'server',
      'operation',
      'result',
    ]),
    mcpProtocolErrors: counter(
      'mcp_protocol_errors_total',
      'JSON-RPC errors answered by MCP servers, by code.',
      ['server', 'operation', 'code'],
    ),
    mcpRequestDuration: histogram(
      'mcp_request_duration_seconds',
      'Time to the answer of a call to an MCP server, failures included.',
      ['server', 'operation'],
      requestBuckets,
    ),
    runDuration: histogram(
      'run_duration_seconds',
      'From the start call to the end of the run.',
      ['server', 'tool'],
      longBuckets,
    ),
    scrapeDuration: histogram(
      'scrape_duration_seconds',
      'From submission to the outcome, waiting included.',
      ['server', 'tool'],
      longBuckets,
    ),
    pollLateness: histogram(
      'poll_lateness_seconds',
      'How much later than planned a poll was made.',
      ['server'],
      latenessBuckets,
    ),
    itemsWritten: counter('items_written_total', 'Items made durable.', ['server', 'sink']),
    pagesWritten: counter('pages_written_total', 'Pages made durable.', ['server', 'sink']),
    resultBytes: counter('result_bytes_total', 'Bytes of pages made durable.', ['server', 'sink']),
    sinkErrors: counter('sink_errors_total', 'Writes a sink refused.', ['sink']),
    sinkHeld: gauge('sink_held', '1 while results are held because the sink refuses writes.', ['sink']),
    queueJobs: gauge('queue_jobs', 'Jobs by queue and state, fleet-wide.', ['queue', 'state']),
    queueOldestAge: gauge(
      'queue_oldest_age_seconds',
      'Age of the oldest job that is due and waits, fleet-wide.',
      ['queue'],
    ),
    runsInFlight: gauge('runs_in_flight', 'Runs under way, fleet-wide.', ['server']),
    runSlots: gauge(
      'run_slots',
      'Runs that may be under way at once, as configured; fewer for a while after the server refused for capacity.',
      ['server'],
    ),
    serverUp: gauge('server_up', '1 when the last call to the server reached it.', ['server']),
    serverHeld: gauge('server_held', '1 while starts on the server are held or paused, by reason.', [
      'server',
      'reason',
    ]),
    toolHeld: gauge('tool_held', '1 while starts of the tool are held or paused, by reason.', [
      'server',
      'tool',
      'reason',
    ]),
    usageUsd: counter('usage_usd_total', 'Cost of settled runs as the server reported it, in US dollars.', [
      'server',
      'tool',
    ]),
    ambiguousStarts: counter(
      'ambiguous_starts_total',
      'Starts whose answer was lost, by how that was resolved.',
      ['server', 'resolution'],
    ),
    orphanRuns: counter('orphan_runs_total', 'Runs found without an owner, by what was done.', [
      'server',
      'action',
    ]),
    stalledJobs: counter('stalled_jobs_total', 'Jobs taken back from a worker that lost its lock.', [
      'queue',
    ]),
    retries: counter('retries_total', 'New attempts of scrapes, by reason.', ['server', 'reason']),
    workerLastFetch: gauge(
      'worker_last_fetch_timestamp_seconds',
      'When this process last asked the queue for work.',
      ['queue'],
    ),
    redisMemoryUsed: gauge('redis_memory_used_bytes', 'Memory Redis uses.'),
    redisMemoryMax: gauge('redis_memory_max_bytes', 'Memory Redis may use; 0: no limit.'),
    redisEvictedKeys: counter(
      'redis_evicted_keys_total',
      'Keys Redis evicted since it started; any is one too many.',
      [],
    ),
    buildInfo: gauge('build_info', 'Always 1; the version is in the label.', ['version']),
  };
}
