import { findActor } from './actors/catalogue.js';
import { type Reply, rpcError, toolError } from './answer.js';
import { invalidArguments } from './arguments.js';
import type { Call, StartArguments } from './call.js';
import type { CallOptions } from './plan.js';
import { hash32 } from './random.js';
import { actorNotFoundTexts, invalidInputTexts, type RefusalName, refusalTexts } from './refusals.js';
import { runAnswer, startAnswer } from './run-answer.js';
import { isFinal, type Run, statusOf, viewDataset } from './runs.js';
import { parseSteering, type SteeredFault, type Steering, SteeringError } from './steering.js';
import { definitionOf } from './toolset.js';

/** The Actor and the input a start call is about, as far as they can be told before anything is checked. */
export function readStart(call: Call, args: Record<string, unknown>): StartArguments | null {
  const own = call.owner.toolset.get(call.name);
  if (own) return { actor: own, input: args, via: 'direct' };
  if (call.name !== 'call-actor') return null;
  const actor = typeof args.actor === 'string' ? findActor(args.actor) : null;
  const input = args.input;
  if (actor === null || typeof input !== 'object' || input === null || Array.isArray(input)) return null;
  return { actor, input: input as Record<string, unknown>, via: 'call-actor' };
}

/**
 * The wishes of a start: the simulator's defaults, the recorded Actor's own input fields, the key `sim`.
 * @throws SteeringError
 */
export function steeringOf(call: Call, { actor, input }: StartArguments): Steering {
  const wishes = actor.wishes === undefined ? {} : parseSteering(actor.wishes(input));
  return { ...call.world.options.steering, ...wishes, ...parseSteering(input.sim) };
}

export function faultsOf(steering: Steering): readonly SteeredFault[] {
  const faults = steering.faults ?? [];
  return steering.fault === undefined ? faults : [{ op: 'start', kind: steering.fault }, ...faults];
}

/** Under which key uses of a start's faults and refusals are counted: equal inputs share it. */
export function startKey({ actor, input }: StartArguments): string {
  const json = JSON.stringify(input);
  return `start:${actor.name}:${json.length}:${hash32(json)}:${hash32(json, 1)}`;
}

/** Carries out `call-actor` or an Actor's own tool; the arguments fit its schema. */
export async function startRun(call: Call, args: Record<string, unknown>): Promise<Reply> {
  const start = readStart(call, args);
  if (start === null) return toolError(actorNotFoundTexts(String(args.actor).slice(0, 300)));
  const { actor, via } = start;
  const refused = (texts: readonly string[], reason: string, telemetry?: 'SOFT_FAIL'): Reply => {
    call.world.note('refused', call, { actor: actor.name, reason });
    return toolError(texts, telemetry);
  };

  // Counted before the check: it may coerce the input in place.
  const key = startKey(start);
  const input = via === 'direct' ? withoutWait(args) : { ...start.input };
  if (via === 'call-actor') {
    const invalid = inputErrors(call, start, input);
    if (invalid !== null) return refused(invalid, 'input');
  }
  let steering: Steering;
  try {
    steering = steeringOf(call, { ...start, input });
  } catch (error) {
    if (!(error instanceof SteeringError)) throw error;
    return refused(invalidInputTexts(actor.name, error.message), 'steering');
  }

  const options = via === 'call-actor' ? ((args.callOptions ?? {}) as CallOptions) : {};
  const memoryMb = options.memory ?? actor.memoryMb;
  const refusal = refusalOf(call, start, steering, key, memoryMb);
  if (refusal !== null) {
    const bare = steering.refuseBare ?? call.world.conditions.refuseBare;
    const texts = refusalTexts(refusal, { via, actor: actor.name, toolName: call.name, bare });
    const telemetry =
      via === 'direct' && texts[0]?.startsWith('Error calling tool') ? 'SOFT_FAIL' : undefined;
    return refused(texts, refusal, telemetry);
  }

  const spec = {
    actor,
    input,
    inputJson: JSON.stringify(input),
    options,
    steering,
    faults: faultsOf(steering).filter((fault) => fault.op !== 'start'),
    memoryMb,
    via,
  };
  // The server repeats a start whose answer it lost, and answers with the second run (apify-contract, Errors).
  if (call.fault?.kind === 'double_run') call.world.start({ ...spec, double: false }, call);
  const run = call.world.start({ ...spec, double: call.fault?.kind === 'double_run' }, call);

  const waitSecs = typeof args.waitSecs === 'number' ? args.waitSecs : defaultWait(call);
  if (via === 'call-actor' && waitSecs === 0) return { kind: 'answer', answer: startAnswer(run) };
  await observe(call, run, waitSecs);
  if (call.cancelled) {
    call.world.abort(run, false, call, 'cancelled');
    return { kind: 'nothing' };
  }
  return { kind: 'answer', answer: runAnswer(run, call.world.now()) };
}

export const defaultWait = (call: Call): number => Math.min(30, call.world.conditions.waitSecsCap);

/**
 * Waits for the end of a run as `get-actor-run` and starts do: progress at each change of status when a token was
 * given, and up to 5 s more when a success reads 0 items (the server probes at 0, 1, 3 and 5 s).
 */
export async function observe(call: Call, run: Run, waitSecs: number): Promise<void> {
  const { world } = call;
  if (waitSecs === 0) return;
  if (!isFinal(run, world.now())) {
    const progress = progressSender(call, run);
    progress?.();
    await call.waitForEnd(run, waitSecs * 1000, progress);
  }
  for (const delay of [1000, 2000, 2000]) {
    const now = world.now();
    if (call.cancelled || call.ended || statusOf(run, now) !== 'SUCCEEDED') return;
    if (viewDataset(run, 'default', now)?.itemCount !== 0) return;
    await call.sleep(delay / world.options.speed);
  }
}

function progressSender(call: Call, run: Run): (() => void) | null {
  const { notify, progressToken, world } = call;
  if (notify === null || progressToken === null) return null;
  let last = '';
  let progress = 0;
  return () => {
    const status = statusOf(run, world.now());
    if (status === last || call.cancelled) return;
    last = status;
    progress += 1;
    const said = run.statusMessage === null ? '' : ` — ${run.statusMessage}`;
    notify(
      JSON.stringify({
        jsonrpc: '2.0',
        method: 'notifications/progress',
        params: {
          _meta: { 'com.apify/ActorRun': { runId: run.id } },
          progressToken,
          progress,
          message: `${run.actor.name}: ${status}${said}`,
        },
      }),
    );
  };
}

function withoutWait(args: Record<string, unknown>): Record<string, unknown> {
  const { waitSecs: _, ...input } = args;
  return input;
}

/** The texts of start-call-actor-bad-input.json, or null when the input fits the Actor's schema. */
function inputErrors(call: Call, { actor }: StartArguments, input: Record<string, unknown>): string[] | null {
  const { world } = call;
  const errors = world.checks.check(`input of ${actor.name}`, actor, input, world.conditions);
  if (errors === null) return null;
  const schema = JSON.stringify(definitionOf('', actor, world.conditions).inputSchema);
  return [
    `Input validation failed for Actor '${actor.name}'. Please ensure your input matches the Actor's input schema.`,
    `Input schema:\n\`\`\`json\n${schema}\n\`\`\``,
    `Validation errors: ${errors.map((error) => error.message).join(', ')}`,
  ];
}

function refusalOf(
  call: Call,
  { actor }: StartArguments,
  steering: Steering,
  key: string,
  memoryMb: number,
): RefusalName | null {
  const { conditions, faults, runs } = call.world;
  const set = conditions.refusals[actor.name] ?? conditions.refusals['*'];
  if (set !== undefined) return set;
  if (steering.refuse !== undefined && faults.use(`${key}#refuse`, steering.refuseTimes ?? 1e9)) {
    return steering.refuse;
  }
  if (conditions.maxRuns === null && conditions.memoryMb === null) return null;
  const inFlight = runs.inFlight(call.world.now());
  if (conditions.maxRuns !== null && inFlight.runs >= conditions.maxRuns) return 'concurrency';
  const full = conditions.memoryMb !== null && inFlight.memoryMb + memoryMb > conditions.memoryMb;
  return full ? 'memory' : null;
}

export const invalidParams = (name: string, errors: Parameters<typeof invalidArguments>[1]): Reply =>
  rpcError(-32602, invalidArguments(name, errors));
