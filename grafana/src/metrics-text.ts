import { Registry } from 'prom-client';
import { operations } from '../../src/mcp/port.js';
import { defineMetrics } from '../../src/metrics/definitions.js';
import { holdReasons, results } from '../../src/metrics/labels.js';
import { outcomes } from '../../src/scrape/types.js';
import { alertsOf } from './generate.js';
import { recordingRules } from './recording.js';
import { Scale } from './scale.js';

interface About {
  readonly unit: string;
  readonly question: string;
  /** `process`: each process says its own, take sums; `fleet`: the elected process says it for all, take `max`. */
  readonly says: 'process' | 'fleet';
  /** Events of the log, one an increment: they lead from a number to its scrapes and runs. */
  readonly events: readonly string[];
}

type Key = keyof ReturnType<typeof defineMetrics>;
const process = (unit: string, question: string, events: readonly string[] = []): About => ({
  unit,
  question,
  says: 'process',
  events,
});
const fleet = (unit: string, question: string): About => ({ unit, question, says: 'fleet', events: [] });

/** The compiler sees to it that no metric is left out. */
const about: Readonly<Record<Key, About>> = {
  scrapesSubmitted: process('scrapes', 'Does work come in, and for which tools?', ['scrape.accepted']),
  scrapesDeduplicated: process('submissions', 'Do producers send what was sent before?'),
  jobsInvalid: process('jobs', 'Does a producer send nonsense, and through which door?', ['job.invalid']),
  scrapesSettled: process('scrapes', 'How do scrapes end? How many succeed with nothing in them?', [
    'scrape.settled',
  ]),
  mcpRequests: process('calls', 'Does the server answer, and how do calls fail?', ['mcp.call']),
  mcpProtocolErrors: process('errors', 'Why are calls refused? -32602 at a start: the schema changed.', [
    'mcp.call',
  ]),
  mcpRequestDuration: process('seconds', 'Is the server slow?'),
  runDuration: process('seconds', 'How long do runs take at the server?'),
  scrapeDuration: process('seconds', 'How long does a producer wait for its result, queueing included?', [
    'scrape.settled',
  ]),
  pollLateness: process('seconds', 'Do workers keep up with the polls they planned?'),
  itemsWritten: process('items', 'How many items become durable?'),
  pagesWritten: process('pages', 'How many pages become durable?'),
  resultBytes: process('bytes', 'How fast does the destination fill?'),
  sinkErrors: process('writes', 'Does the destination refuse writes?', ['sink.held']),
  sinkHeld: process('0 or 1', 'Are results held back because the destination takes no writes?'),
  queueJobs: fleet('jobs', 'Where do jobs wait, and how many?'),
  queueOldestAge: fleet('seconds', 'How long has the oldest due job waited?'),
  runsInFlight: fleet('runs', 'How many runs are under way, against the slots?'),
  runSlots: fleet('runs', 'How many runs may be under way at once now?'),
  serverUp: fleet('0 or 1', 'Did the last look reach the server?'),
  serverHeld: fleet('0 or 1', 'Is the server held or paused, and why?'),
  toolHeld: fleet('0 or 1', 'Is a tool held or paused, and why? No series: it never was.'),
  usageUsd: process('US dollars', 'What do runs cost, as the server reports it when they settle?', [
    'scrape.settled',
  ]),
  ambiguousStarts: process('starts', 'How often is the answer of a start lost, and how does that end?', [
    'start.adopted',
    'start.repeated',
    'start.unknown',
  ]),
  orphanRuns: process('runs', 'Are there runs nobody waits for, and were they ended?', [
    'orphan.found',
    'orphan.aborted',
    'orphan.given_up',
  ]),
  stalledJobs: process('jobs', 'Do workers crash or freeze with jobs in hand?', ['job.stalled']),
  retries: process('attempts', 'How many attempts are repeated, and why?', ['scrape.retried']),
  workerLastFetch: process('seconds since 1970', 'Does this process still ask each queue for work?'),
  redisMemoryUsed: fleet('bytes', 'How full is Redis?'),
  redisMemoryMax: fleet('bytes', 'How much may Redis hold? 0: no limit.'),
  redisEvictedKeys: fleet('keys', 'Does Redis throw keys away? Any is one too many.'),
  buildInfo: process('1', 'Which version runs where?'),
};

interface Described {
  readonly name: string;
  readonly help: string;
  readonly type: string;
  readonly labelNames: readonly string[];
  readonly upperBounds?: readonly number[];
}

const code = (words: readonly string[]) => words.map((word) => `\`${word}\``).join(' ');

const watched = (name: string, used: string) => new RegExp(`\\b${name}(_bucket|_count|_sum)?\\b`).test(used);

/** Each metric with the events that tell of its increments, and whether rules ask for it. */
export function metricEvents(): {
  name: string;
  type: string;
  watched: boolean;
  events: readonly string[];
}[] {
  const defined = defineMetrics(new Registry());
  const used = [...recordingRules(new Scale(1)), ...alertsOf()].map(({ expr }) => expr).join('\n');
  return (Object.keys(about) as Key[]).map((key) => {
    const { name } = defined[key] as unknown as Described;
    const type = defined[key].constructor.name;
    return { name, type, watched: watched(name, used), events: about[key].events };
  });
}

/** docs/metrics.md, from the registry. */
export function metricsPage(): string {
  const defined = defineMetrics(new Registry());
  const used = [...recordingRules(new Scale(1)), ...alertsOf()].map(({ expr }) => expr).join('\n');
  const sections = (Object.keys(about) as Key[]).map((key) => {
    // prom-client keeps a metric's description to itself.
    const metric = defined[key] as unknown as Described;
    const { unit, question, says, events } = about[key];
    const type = { Counter: 'counter', Gauge: 'gauge', Histogram: 'histogram' }[
      defined[key].constructor.name
    ];
    const buckets = metric.upperBounds === undefined ? '' : ` Buckets: ${metric.upperBounds.join(', ')}.`;
    const labels = metric.labelNames.filter((label) => label !== 'le');
    return [
      `### \`${metric.name}\``,
      '',
      `**${question}** ${metric.help}${buckets}`,
      '',
      `${type} · unit: ${unit} · labels: ${labels.length === 0 ? 'none' : code(labels)} · ${says === 'fleet' ? 'one elected process says it for the fleet: take `max`' : 'each process says its own: take `sum`'}${watched(metric.name, used) ? ' · watched by alerts' : ''}${events.length > 0 ? ` · in the log: ${code(events)}` : ''}`,
      '',
    ].join('\n');
  });
  const page = `<!-- Generated by \`npm run docs:metrics\` from src/metrics; change it there or in grafana/src/metrics-text.ts. -->

# Metrics

Every worker serves them at \`/metrics\` (\`http.host\`, \`http.port\`; \`trawl run --metrics\` does so too), in base units, with
bounded labels: a tool that is not in the configuration is \`other\`, as is everything else that is not in a list below. No
label holds a run, a job, a URL or a message.

**From a metric to a run.** What alerts count has one line in the log an increment, whose \`event\` stands at the metric below, with the metric's labels
and \`scrapeId\` and \`runId\` as far as there are any: \`jq 'select(.event=="scrape.settled" and .outcome=="empty") | .runId'\`. A call to a server
(\`mcp.call\`) is written when it fails, and at \`debug\` always. Of jobs that cannot be read the intake writes five lines a turn and then how many
more there were. Not exemplars: prom-client keeps them for OpenMetrics alone, Prometheus stores them only when told to, and they last as long as
the series' memory, while somebody looks for the run in the morning.

Counters are at most once across crashes: a crash may lose a count and never doubles one. Beside these there are
prom-client's metrics of the process (\`process_*\`, \`nodejs_*\`).

| label | values |
| --- | --- |
| \`server\`, \`tool\` | as configured, else \`other\` |
| \`outcome\` | ${code(outcomes)} |
| \`operation\` | ${code(operations)} |
| \`result\` | ${code(results)} |
| \`reason\` of holds | ${code(holdReasons)} |
| \`queue\` | \`scrape\`, \`start-<server>\`, \`poll-<server>\`, \`pages-<server>\`, \`abort-<server>\` |

${sections.join('\n')}`;
  return `${page.trimEnd()}\n`;
}
