import type { ActorSpec } from './actors/actor.js';
import { toolNameOf } from './actors/catalogue.js';

/** A tool as `tools/list` shows it; texts of the recorded ones as recorded. */
export interface ToolDefinition {
  readonly name: string;
  readonly title: string;
  readonly description: string;
  readonly inputSchema: Readonly<Record<string, unknown>>;
  readonly outputSchema?: object;
  readonly annotations: object;
  readonly execution?: object;
}

const text = (description: string) => ({ type: 'string', description });
const consoleUrl = (what: string) =>
  text(`Personalized Apify Console link to the ${what}; present only for Console sessions`);

const datasetEntry = {
  type: 'object',
  properties: {
    id: text('Dataset ID'),
    apifyConsoleUrl: consoleUrl('dataset'),
    name: { type: 'string' },
    title: { type: 'string' },
    itemCount: { type: 'number' },
    inflatedBytes: {
      type: 'number',
      description:
        'Approximate uncompressed byte size of the dataset. Use with itemCount to pick limit/fields before fetching.',
    },
    fields: {
      type: 'array',
      items: { type: 'string' },
      description: 'Dataset field paths in dot notation (e.g. ["metadata.url"])',
    },
  },
  required: ['id'],
};

const storeEntry = {
  type: 'object',
  properties: {
    id: text('Key-value store ID'),
    apifyConsoleUrl: consoleUrl('store'),
    name: { type: 'string' },
    title: { type: 'string' },
    keyCount: { type: 'number', description: 'Total number of keys (omitted when truncated)' },
    keys: { type: 'array', items: { type: 'string' }, description: 'Up to 50 key names' },
  },
  required: ['id'],
};

const runOutput = {
  type: 'object',
  properties: {
    runId: text('Actor run ID'),
    apifyConsoleUrl: consoleUrl('run'),
    actorId: text('Stable Apify Actor ID from the run record'),
    actorName: text('"username/actor-name"'),
    status: text(
      'Run status: READY | RUNNING | TIMING-OUT | TIMED-OUT | ABORTING | ABORTED | SUCCEEDED | FAILED',
    ),
    statusMessage: text('Pass-through from Apify run.statusMessage'),
    exitCode: {
      type: 'number',
      description: 'Actor process exit code; populated for terminal states (especially FAILED)',
    },
    startedAt: text('ISO timestamp when the run started'),
    finishedAt: text('ISO timestamp when the run finished (terminal states only)'),
    stats: {
      type: 'object',
      description: 'Run statistics',
      properties: {
        runTimeSecs: { type: 'number' },
        computeUnits: { type: 'number' },
        memMaxBytes: { type: 'number' },
      },
    },
    storages: {
      type: 'object',
      description:
        'Dataset and key-value store metadata, keyed by alias. "default" is always the primary entry.',
      properties: {
        datasets: {
          type: 'object',
          description: 'Map of dataset alias → metadata. Key "default" is always the run\'s primary dataset.',
          properties: { default: datasetEntry },
          required: ['default'],
          additionalProperties: datasetEntry,
        },
        keyValueStores: {
          type: 'object',
          description:
            'Map of key-value store alias → metadata. Key "default" is always the run\'s primary store.',
          properties: { default: storeEntry },
          required: ['default'],
          additionalProperties: storeEntry,
        },
      },
    },
    summary: text('Past-tense summary of the run state'),
    nextStep: text('One primary follow-up action with identifiers interpolated'),
  },
  required: ['runId', 'actorId', 'status', 'storages', 'summary', 'nextStep'],
};

const hints = (title: string, readOnlyHint: boolean, rest: object = {}) => ({
  title,
  readOnlyHint,
  destructiveHint: !readOnlyHint,
  ...rest,
});
const reading = { idempotentHint: true, openWorldHint: false };
const strict = (properties: object, required: readonly string[]) => ({
  type: 'object',
  properties,
  required,
  additionalProperties: false,
});
const id = (description: string) => ({ type: 'string', minLength: 1, description });

function getActorRun(cap: number): ToolDefinition {
  return {
    name: 'get-actor-run',
    title: 'Get Actor run',
    description: `Get detailed information about a specific Actor run.

Returns run result: status, storages (datasets/keyValueStores alias map), stats, summary, nextStep.
- summary describes the past (e.g. "SUCCEEDED in 22s. 47 items; 3 fields available.").
- nextStep prescribes one primary follow-up action with identifiers interpolated (e.g. "Use get-dataset-items with datasetId=...").
- waitSecs (0–${cap}, default ${Math.min(30, cap)}) waits up to that many seconds for terminal status before returning.

USAGE:
- Use to check the status of a run started by any Actor-running tool.
- Pass waitSecs > 0 to block until terminal (or until the cap elapses).

USAGE EXAMPLES:
- user_input: Show details of run y2h7sK3Wc
- user_input: Wait for run y2h7sK3Wc to finish`,
    inputSchema: strict(
      {
        runId: id('The ID of the Actor run.'),
        waitSecs: {
          default: Math.min(30, cap),
          description: `Maximum seconds to wait for the run to reach a terminal state (SUCCEEDED, FAILED, ABORTED, TIMED-OUT).\n0 returns immediately with the current status. Cap: ${cap}. Default: ${Math.min(30, cap)}.`,
          type: 'integer',
          minimum: 0,
          maximum: cap,
        },
      },
      ['runId'],
    ),
    outputSchema: runOutput,
    annotations: hints('Get Actor run', true, reading),
  };
}

const getDatasetItems: ToolDefinition = {
  name: 'get-dataset-items',
  title: 'Get dataset items',
  description: `Get items (rows) from a dataset — the output/results produced by an Actor run.
Returns the rows themselves, not dataset metadata, counts, or a schema.
When the user provides a datasetId and asks to retrieve results, output, data, or rows, call this tool directly.
Default limit is 20. Use clean=true to skip empty items and hidden fields.

USAGE:
- Use when you need to read data from a dataset (all items or only selected fields).

USAGE EXAMPLES:
- user_input: Retrieve results from dataset abc123
- user_input: Get only metadata.url and title from dataset username~my-dataset`,
  inputSchema: strict(
    {
      datasetId: id('Dataset ID or username~dataset-name.'),
      clean: {
        description:
          'If true, returns only non-empty items and skips hidden fields (starting with #). Shortcut for skipHidden=true and skipEmpty=true.',
        type: 'boolean',
      },
      offset: { description: 'Number of items to skip at the start. Default is 0.', type: 'number' },
      limit: {
        description: 'Maximum number of items to return. Default is 20.',
        type: 'integer',
        minimum: 1,
        maximum: Number.MAX_SAFE_INTEGER,
      },
      fields: {
        description:
          'Comma-separated list of fields to include in results. Fields in output are sorted as specified. Use dot notation for nested objects (e.g. "metadata.url"); the server auto-flattens parent prefixes.',
        type: 'string',
      },
      omit: { description: 'Comma-separated list of fields to exclude from results.', type: 'string' },
      desc: {
        description: 'If true, results are returned in reverse order (newest to oldest).',
        type: 'boolean',
      },
      flatten: {
        description:
          'Comma-separated list of fields to flatten (e.g. flatten="metadata" turns {"metadata":{"url":"x"}} into {"metadata.url":"x"}). Normally derived automatically from dot-notation in `fields`; specify only as a diagnostic override.',
        type: 'string',
      },
    },
    ['datasetId'],
  ),
  outputSchema: {
    type: 'object',
    properties: {
      datasetId: text('Dataset ID'),
      apifyConsoleUrl: consoleUrl('dataset'),
      items: { type: 'array', items: { type: 'object' }, description: 'Dataset items' },
      itemCount: { type: 'number', description: 'Number of items returned' },
      totalItemCount: { type: 'number', description: 'Total items in dataset' },
      offset: { type: 'number', description: 'Offset used for pagination' },
      limit: { type: 'number', description: 'Limit used for pagination' },
      summary: text('Summary of the result'),
      nextStep: text('One follow-up action with tool name'),
    },
    required: ['datasetId', 'items', 'itemCount', 'totalItemCount', 'offset', 'limit', 'summary', 'nextStep'],
  },
  annotations: hints('Get dataset items', true, reading),
};

const getRecord: ToolDefinition = {
  name: 'get-key-value-store-record',
  title: 'Get key-value store record',
  description: `Get the value stored under a specific key in a key-value store — a single record, not a listing of all keys.
Requires the exact key name.
The response preserves the original Content-Encoding; most clients handle decompression automatically.

USAGE:
- Use when you need to retrieve a specific record (JSON, text, or binary) from a store.

USAGE EXAMPLES:
- user_input: Get record INPUT from store abc123
- user_input: Get record data.json from store username~my-store`,
  inputSchema: strict(
    {
      keyValueStoreId: id('Key-value store ID or username~store-name.'),
      recordKey: id('Key of the record to retrieve.'),
    },
    ['keyValueStoreId', 'recordKey'],
  ),
  outputSchema: {
    type: 'object',
    properties: {
      keyValueStoreId: text('Key-value store ID'),
      key: text('Record key'),
      value: { description: 'The stored value (JSON, text, or binary)' },
      contentType: text('MIME type of the stored value'),
      summary: text('Summary of the result'),
    },
    required: ['keyValueStoreId', 'key', 'value', 'summary'],
  },
  annotations: hints('Get key-value store record', true, reading),
};

const abortActorRun: ToolDefinition = {
  name: 'abort-actor-run',
  title: 'Abort Actor run',
  description: `Abort an Actor run that is currently starting or running.
For runs with status SUCCEEDED, FAILED, ABORTING, ABORTED, or TIMED-OUT, this call has no effect.
The results will include the updated run details after the abort request.

USAGE:
- Use when you need to stop a run that is taking too long or misconfigured.

USAGE EXAMPLES:
- user_input: Abort run y2h7sK3Wc
- user_input: Gracefully abort run y2h7sK3Wc`,
  inputSchema: strict(
    {
      runId: id('The ID of the Actor run to abort.'),
      gracefully: {
        description: 'If true, the Actor run will abort gracefully with a 30-second timeout.',
        type: 'boolean',
      },
    },
    ['runId'],
  ),
  outputSchema: runOutput,
  annotations: hints('Abort Actor run', false, reading),
};

const getRunList: ToolDefinition = {
  name: 'get-actor-run-list',
  title: 'Get user runs list',
  description: 'List Actor runs for the authenticated user with optional filtering and sorting.',
  inputSchema: strict(
    {
      offset: { type: 'number', default: 0, description: 'Number of array elements to skip. Default 0.' },
      limit: {
        type: 'number',
        maximum: 10,
        default: 10,
        description:
          'Maximum number of array elements to return. The default value (as well as the maximum) is 10.',
      },
      desc: { type: 'boolean', default: false, description: 'Newest first when true.' },
      status: {
        type: 'string',
        enum: ['READY', 'RUNNING', 'SUCCEEDED', 'FAILED', 'TIMING-OUT', 'TIMED-OUT', 'ABORTING', 'ABORTED'],
        description: 'Return only runs with the provided status.',
      },
    },
    [],
  ),
  annotations: hints('Get user runs list', true, reading),
};

const getRunLog: ToolDefinition = {
  name: 'get-actor-run-log',
  title: 'Get Actor run log',
  description: 'Retrieve recent log lines for a specific Actor run.',
  inputSchema: strict(
    {
      runId: { type: 'string', description: 'The ID of the Actor run.' },
      lines: { type: 'number', maximum: 50, default: 10, description: 'The last lines; 0: the entire log.' },
    },
    ['runId'],
  ),
  outputSchema: { type: 'object', properties: { log: { type: 'string' } }, required: ['log'] },
  annotations: hints('Get Actor run log', true, reading),
};

const getDataset: ToolDefinition = {
  name: 'get-dataset',
  title: 'Get dataset',
  description:
    'Get metadata for a dataset. Returns the field list and item counts, not the row data. itemCount updates may be delayed by up to ~5 seconds.',
  inputSchema: strict({ datasetId: id('Dataset ID or username~dataset-name.') }, ['datasetId']),
  outputSchema: {
    type: 'object',
    properties: { id: { type: 'string' }, summary: { type: 'string' }, nextStep: { type: 'string' } },
    required: ['id', 'summary', 'nextStep'],
  },
  annotations: hints('Get dataset', true, reading),
};

function callActor(cap: number): ToolDefinition {
  return {
    name: 'call-actor',
    title: 'Call Actor',
    description:
      'Call any Actor from the Apify Store. Waits up to waitSecs (default 30s) for completion; returns run status and storage IDs.',
    inputSchema: {
      type: 'object',
      properties: {
        actor: { type: 'string', description: 'The name of the Actor to call. Format: "username/name".' },
        input: {
          type: 'object',
          properties: {},
          description: 'The input JSON to pass to the Actor. Required.',
        },
        waitSecs: {
          type: 'integer',
          minimum: 0,
          maximum: cap,
          default: Math.min(30, cap),
          description: `Seconds to wait for completion (0–${cap}, default ${Math.min(30, cap)}).`,
        },
        callOptions: {
          type: 'object',
          properties: {
            memory: { type: 'number', minimum: 128, maximum: 32_768, description: 'Memory per run in MB.' },
            timeout: { type: 'number', minimum: 0, description: 'Maximum runtime in seconds; 0: none.' },
            build: { type: 'string', description: 'Tag or number of the build to run.' },
            maxItems: { type: 'integer', exclusiveMinimum: 0, description: 'Caps billed items.' },
            maxTotalChargeUsd: { type: 'number', exclusiveMinimum: 0, description: 'Caps total USD billed.' },
          },
          description: 'Optional run config.',
        },
      },
      required: ['actor', 'input'],
    },
    outputSchema: runOutput,
    annotations: hints('Call Actor', false, { idempotentHint: false, openWorldHint: true }),
    execution: { taskSupport: 'optional' },
  };
}

/** The helpers, by name, with the cap on `waitSecs` in their schemas. */
export function helperDefinitions(cap: number): ReadonlyMap<string, ToolDefinition> {
  return new Map(
    [
      callActor(cap),
      getActorRun(cap),
      getDatasetItems,
      getRecord,
      abortActorRun,
      getRunList,
      getRunLog,
      getDataset,
    ].map((tool) => [tool.name, tool]),
  );
}

/** An Actor's own tool: its input plus `waitSecs`. */
export function actorTool(actor: ActorSpec, cap: number): ToolDefinition {
  const { title, properties, required, additionalProperties, type } = actor.inputSchema;
  const name = toolNameOf(actor.name);
  return {
    name,
    title: actor.name,
    description: `This tool calls the Actor "${actor.name}" and retrieves its output results.\nActor description: ${actor.description}`,
    inputSchema: {
      title,
      type,
      properties: {
        ...properties,
        waitSecs: {
          type: 'integer',
          minimum: 0,
          maximum: cap,
          default: Math.min(30, cap),
          description: `Max seconds (0–${cap}, default ${Math.min(30, cap)}) to cap the wait for the Actor run to reach terminal state. For long-running Actors the response returns at the cap with the current run status; follow \`nextStep\` to poll via get-actor-run. Set to 0 to fire-and-forget.`,
        },
      },
      ...(required === undefined ? {} : { required }),
      ...(additionalProperties === undefined ? {} : { additionalProperties }),
      $id: `https://apify.com/mcp/${name}/schema.json`,
    },
    outputSchema: runOutput,
    annotations: hints(actor.name, false, { openWorldHint: true }),
    execution: { taskSupport: 'optional' },
  };
}
