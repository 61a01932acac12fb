/**
 * Refusals of a start, worded as the API words them and wrapped as the MCP server wraps them (apify-contract, Errors).
 * `bare` leaves the API's error type out, which is all that some answers carry (`start-402.json`).
 */
export const refusalNames = [
  'payment',
  'usage',
  'platform_feature',
  'concurrency',
  'cannot_start',
  'memory',
  'actor_memory',
  'auth',
  'permissions',
  'not_rented',
  'not_approved',
  'disabled',
  'public_disabled',
  'removed',
  'bad_input',
  'min_charge',
  'server_error',
  'unknown',
] as const;
export type RefusalName = (typeof refusalNames)[number];

interface Refusal {
  readonly status: number;
  readonly type: string | null;
  readonly message: string;
}

const refusals: Readonly<Record<RefusalName, Refusal>> = {
  payment: { status: 402, type: null, message: 'Payment required' },
  usage: {
    status: 402,
    type: 'not-enough-usage-to-run-paid-actor',
    message:
      'By launching this job you will exceed your remaining usage. Please consider an upgrade to a higher subscription plan.',
  },
  platform_feature: {
    status: 403,
    type: 'platform-feature-disabled',
    message: 'Monthly usage hard limit exceeded',
  },
  concurrency: {
    status: 402,
    type: 'concurrent-runs-limit-exceeded',
    message:
      'You have reached the maximum number of concurrent Actor runs of your plan. Please wait for some of them to finish',
  },
  cannot_start: {
    status: 402,
    type: 'cannot-start-actor-runs',
    message: 'You cannot start more Actor runs at the moment',
  },
  memory: {
    status: 402,
    type: 'memory-limit-exceeded',
    message:
      'By launching this job you will exceed the memory limit of 8192MB for all your Actor runs and builds (currently used: 8192MB, requested: 1024MB). Please consider an upgrade to a higher subscription plan.',
  },
  actor_memory: {
    status: 402,
    type: 'actor-memory-limit-exceeded',
    message:
      'By launching this job you will exceed the memory limit of 8192MB for all your Actor runs and builds (currently used: 7168MB, requested: 4096MB).',
  },
  auth: {
    status: 401,
    type: 'user-or-token-not-found',
    message: 'User was not found or authentication token is not valid',
  },
  permissions: { status: 403, type: 'insufficient-permissions', message: 'Insufficient permissions' },
  not_rented: {
    status: 403,
    type: 'actor-is-not-rented',
    message: 'You must rent a paid Actor in order to run it after its free trial has expired',
  },
  not_approved: {
    status: 403,
    type: 'full-permission-actor-not-approved',
    message: 'This Actor requires full permissions, which you have not approved yet.',
  },
  disabled: { status: 403, type: 'actor-disabled', message: 'This Actor has been disabled' },
  public_disabled: {
    status: 403,
    type: 'public-actor-disabled',
    message: 'This public Actor has been disabled by its developer',
  },
  removed: { status: 404, type: 'record-not-found', message: 'Actor was not found' },
  bad_input: {
    status: 400,
    type: 'invalid-input',
    message: 'Input is not valid: Field input.searchStringsArray must be an array',
  },
  min_charge: {
    status: 400,
    type: 'max-total-charge-usd-below-minimum',
    message: 'The maximum total charge of the run is below the minimum that this Actor requires',
  },
  server_error: { status: 500, type: 'internal-server-error', message: 'Internal server error' },
  unknown: {
    status: 400,
    type: 'moon-phase-unsuitable',
    message: 'The run was declined for a reason nobody has written down',
  },
};

const runLimitAdvice =
  'You have reached your account limit for concurrent Actor runs. Wait for running Actors to finish, or upgrade your plan at https://console.apify.com/billing/subscription.';
const memoryAdvice =
  'Account memory quota exceeded for your plan. Retry with a smaller callOptions.memory, or wait for current runs to finish before retrying.';

/** Where the refusal surfaces: each tool wraps the API's sentence in its own. */
export interface RefusalPlace {
  readonly via: 'call-actor' | 'direct';
  readonly actor: string;
  readonly toolName: string;
  readonly bare: boolean;
}

/** The text blocks of a refused start (`isError: true`), and the HTTP status of the API behind it. */
export function refusalTexts(name: RefusalName, place: RefusalPlace): string[] {
  const { status, type, message } = refusals[name];
  if (name === 'removed') return actorNotFoundTexts(place.actor);
  const sentence = place.bare || type === null ? message : `${message} (API error type: ${type})`;
  if (name === 'not_approved') {
    return [sentence, `Approve here: https://console.apify.com/actors/approve?actor=${place.actor}`];
  }
  if (place.via === 'direct') {
    if (name === 'cannot_start')
      return [`Error calling tool "${place.toolName}": ${sentence}. ${runLimitAdvice}`];
    if (status === 402) return [sentence];
    if (name === 'bad_input') return invalidInputTexts(place.actor, sentence);
    return [callErrorText(place.toolName, sentence, status)];
  }
  if (name === 'memory') return [`Failed to call Actor '${place.actor}': ${sentence}`, memoryAdvice];
  if (name === 'cannot_start') return [`Failed to call Actor '${place.actor}': ${sentence}`, runLimitAdvice];
  if (name === 'bad_input') return invalidInputTexts(place.actor, sentence);
  return [
    `Failed to call Actor '${place.actor}': ${sentence}`,
    'Please verify the Actor name, input parameters, and ensure the Actor exists.',
  ];
}

/** `start-403.json`, `abort-unknown-run.json`: a tool call that ended in an API error. */
export function callErrorText(toolName: string, sentence: string, status: number): string {
  return `Error calling tool "${toolName}": ${sentence}. ${hint(status)}`;
}

function hint(status: number): string {
  if (status === 401) return 'Authentication failed, check APIFY_TOKEN is set and valid.';
  if (status === 403) return 'The resource may be private or your token may lack access.';
  return 'Verify the tool name and input parameters.';
}

export function invalidInputTexts(actor: string, sentence: string): string[] {
  return [
    `Failed to call Actor '${actor}': ${sentence}`,
    "Please ensure the input is correct and matches the Actor's input schema.",
  ];
}

export function actorNotFoundTexts(actor: string): string[] {
  return [
    `Actor '${actor}' was not found.\nPlease verify Actor ID or name format (e.g., "username/name" like "apify/rag-web-browser") and ensure that the Actor exists.`,
  ];
}

export const deadTokenSentence = 'User was not found or authentication token is not valid';
