import type { Steering } from '../steering.js';

export type Input = Readonly<Record<string, unknown>>;

export interface InputSchema {
  readonly title: string;
  readonly type: 'object';
  readonly properties: Readonly<Record<string, object>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: boolean;
}

/**
 * The JSON of one item, in parts, so that a page of thousands costs string joins and no serialising. `core` alone is
 * used when the asked size is smaller than `core` and `rest`; `filler` brings an item up to its size.
 */
export interface ItemShape {
  /** Names shown as `storages.datasets.default.fields`, once there are items. */
  readonly fields: readonly string[];
  core(index: number): string;
  rest(index: number): string;
  readonly filler: { readonly field: string; readonly kind: 'text' | 'reviews' };
}

/** A simulated Actor: what `tools/list` says of it and how its runs behave (apify-contract, What to simulate). */
export interface ActorSpec {
  readonly name: string;
  readonly id: string;
  readonly description: string;
  readonly inputSchema: InputSchema;
  readonly memoryMb: number;
  /** Seconds of a run at speed 1: median and sigma of a lognormal distribution. */
  timing(input: Input): { readonly median: number; readonly sigma: number };
  /** How many items a good run brings, drawn; `median` is used when nothing is drawn. */
  items(input: Input): { readonly low: number; readonly high: number; readonly median: number };
  /** Natural size of an item in bytes; 0: as it is, without filler. */
  bytes(input: Input): { readonly low: number; readonly high: number };
  shape(input: Input): ItemShape;
  /** USD. */
  readonly price: { readonly start: number; readonly item: number } | null;
  readonly records: Readonly<Record<string, unknown>>;
  /** Wishes made through the Actor's own input fields (the stub of the recorded traffic). */
  wishes?(input: Input): Steering;
}

/** Declared by every Actor except the recorded one, whose schema is as recorded. */
export const simProperty = {
  title: 'Simulated run',
  type: 'object',
  description: 'Steers the simulated run; the simulator alone knows this field.',
} as const;

/** A number out of the input, within bounds; `fallback` otherwise. */
export function limitOf(input: Input, key: string, fallback: number, most = 1_000_000): number {
  const value = input[key];
  return typeof value === 'number' && Number.isFinite(value) && value >= 0
    ? Math.min(Math.floor(value), most)
    : fallback;
}

/** The first text under `key` (a string, or a list of them) as JSON, bounded. */
export function firstText(input: Input, key: string, fallback: string): string {
  const value = Array.isArray(input[key]) ? input[key][0] : input[key];
  return JSON.stringify(typeof value === 'string' ? value.slice(0, 200) : fallback);
}
