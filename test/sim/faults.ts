import { z } from 'zod';
import { hash32, seeded } from './random.js';
import {
  type FaultKind,
  faultKinds,
  type SimOperation,
  type SteeredFault,
  simOperations,
} from './steering.js';

export const faultRuleSchema = z.strictObject({
  kind: z.enum(faultKinds),
  /** Default: every operation. */
  op: z.enum([...simOperations, 'any']).default('any'),
  /** Only calls for this Actor (`user/name`); default: all. */
  actor: z.string().optional(),
  /** Chance of each matching call; default 1. */
  probability: z.number().min(0).max(1).default(1),
  /** How often it strikes before it is spent; default: for ever. */
  times: z.int().min(1).optional(),
  /** So many calls of an operation go by unhurt after one that such a rule struck, however many rules wait; default 0. */
  spacing: z.int().min(0).max(1_000).default(0),
  /** For `slow` (default 1000) and for `cut` and `huge` none. */
  ms: z.number().min(0).max(600_000).optional(),
  /** For `http_429`: what Retry-After says; `date`: as an HTTP date. Default: the condition `retryAfterSecs`. */
  retryAfter: z.union([z.number().min(0).max(86_400), z.literal('date'), z.literal('none')]).optional(),
});
export type FaultRule = z.input<typeof faultRuleSchema>;

export interface Fault {
  readonly kind: FaultKind;
  readonly ms: number;
  readonly retryAfter: number | 'date' | 'none' | null;
}

/** Where a call stands when faults are picked for it. */
export interface FaultTarget {
  readonly op: SimOperation;
  readonly actor: string | null;
  /** Faults the job asked for, and the key under which their uses are counted (the input, or the run id). */
  readonly steered: readonly SteeredFault[];
  readonly steeredKey: string;
}

const keysKept = 100_000;

/** Picks the fault of each call: the job's own first, then the rules in the order they were added. */
export class Faults {
  readonly #rules: { id: number; rule: z.output<typeof faultRuleSchema>; left: number }[] = [];
  readonly #uses = new Map<string, number>();
  /** Calls of each operation since one was struck by a rule with spacing. */
  readonly #unhurt = new Map<SimOperation, number>();
  readonly #seed: number;
  #random: () => number;
  #nextId = 1;
  /** How often each kind has struck. */
  readonly fired = new Map<FaultKind, number>();

  constructor(seed: number) {
    this.#seed = seed;
    this.#random = seeded(hash32('faults', seed));
  }

  /** Adds a rule and returns its id. @throws ZodError on a bad rule. */
  add(rule: FaultRule): number {
    const parsed = faultRuleSchema.parse(rule);
    const id = this.#nextId++;
    this.#rules.push({ id, rule: parsed, left: parsed.times ?? Number.POSITIVE_INFINITY });
    return id;
  }

  /** The next `times` calls of `op` are struck. */
  next(kind: FaultKind, op: SimOperation | 'any' = 'any', times = 1): number {
    return this.add({ kind, op, times });
  }

  /** Takes a rule away; without an id all of them. */
  clear(id?: number): void {
    const kept = id === undefined ? [] : this.#rules.filter((rule) => rule.id !== id);
    this.#rules.splice(0, this.#rules.length, ...kept);
  }

  reset(): void {
    this.clear();
    this.#uses.clear();
    this.#unhurt.clear();
    this.fired.clear();
    this.#random = seeded(hash32('faults', this.#seed));
  }

  list(): readonly { readonly id: number; readonly rule: FaultRule; readonly left: number | null }[] {
    return this.#rules.map(({ id, rule, left }) => ({ id, rule, left: Number.isFinite(left) ? left : null }));
  }

  pick(target: FaultTarget): Fault | null {
    const fault = this.#pickSteered(target) ?? this.#pickRule(target);
    if (fault !== null) this.fired.set(fault.kind, (this.fired.get(fault.kind) ?? 0) + 1);
    return fault;
  }

  /** Counts a use of something that a job allows `times` times; false once it is used up. */
  use(key: string, times: number): boolean {
    const used = this.#uses.get(key) ?? 0;
    if (used >= times) return false;
    if (this.#uses.size >= keysKept) {
      const oldest = this.#uses.keys().next().value;
      if (oldest !== undefined) this.#uses.delete(oldest);
    }
    this.#uses.set(key, used + 1);
    return true;
  }

  #pickSteered({ op, steered, steeredKey }: FaultTarget): Fault | null {
    for (const [index, fault] of steered.entries()) {
      if (fault.op !== op || !this.use(`${steeredKey}#${index}`, fault.times ?? 1)) continue;
      return { kind: fault.kind, ms: fault.ms ?? 1000, retryAfter: null };
    }
    return null;
  }

  #pickRule({ op, actor }: FaultTarget): Fault | null {
    const unhurt = this.#unhurt.get(op) ?? Number.POSITIVE_INFINITY;
    for (const entry of this.#rules) {
      const { rule } = entry;
      if (entry.left <= 0 || rule.spacing > unhurt || (rule.op !== 'any' && rule.op !== op)) continue;
      if (rule.actor !== undefined && rule.actor !== actor) continue;
      if (rule.probability < 1 && this.#random() >= rule.probability) continue;
      entry.left -= 1;
      if (rule.spacing > 0) this.#unhurt.set(op, 0);
      return { kind: rule.kind, ms: rule.ms ?? 1000, retryAfter: rule.retryAfter ?? null };
    }
    this.#unhurt.set(op, unhurt + 1);
    return null;
  }
}
