import type { ItemShape } from './actors/actor.js';
import { hash32 } from './random.js';

/**
 * Items are never stored: each is a function of its run and its index. Every item carries `_i` (its index in the
 * dataset), `_run` and, outside the default dataset, `_dataset`, so that a checker can prove "exactly once, in order".
 */
export interface ItemSource {
  readonly shape: ItemShape;
  readonly runId: string;
  readonly alias: string;
  readonly bytes: { readonly low: number; readonly high: number };
  /** The first so many items are error rows, as some Actors write them instead of failing. */
  readonly errorRows: number;
  /** About how long `shape.rest` is: it is left out, and not even made, where it would not fit. */
  readonly restLength: number;
}

export interface ItemQuery {
  readonly offset: number;
  readonly limit: number;
  readonly desc?: boolean;
  readonly clean?: boolean;
  readonly fields?: readonly string[];
  readonly omit?: readonly string[];
  readonly flatten?: readonly string[];
}

/** A page is cut above this size; the real server has no cap, but no process should build gigabytes for a test. */
const maxPageBytes = 64 * 1024 * 1024;

const prose =
  'They found the leak behind the dishwasher in ten minutes, capped it, and came back on Friday with the right valve. '.repeat(
    600,
  );
const review = JSON.stringify({
  reviewId: 'ChZDSUhNMG9nS0VJQ0FnSUR0cmF3bC1leGFtcGxl',
  text: prose.slice(0, 340),
  textTranslated: null,
  publishedAtDate: '2026-11-15T17:02:11.120Z',
  likesCount: 0,
  stars: 5,
  responseFromOwnerText: 'Thank you for the kind words!',
  reviewImageUrls: [],
});
const reviews = `${review},`.repeat(400);

/** One item as one line of JSON, near the wanted size. */
export function renderItem(source: ItemSource, index: number): string {
  const mark = `{"_i":${index},"_run":"${source.runId}"${
    source.alias === 'default' ? '' : `,"_dataset":${JSON.stringify(source.alias)}`
  },`;
  if (index < source.errorRows) return mark + errorRow(index);
  const { low, high } = source.bytes;
  const size = low + (high > low ? hash32(source.runId, index + 1) % (high - low + 1) : 0);
  const core = source.shape.core(index);
  const short = size > 0 && mark.length + core.length + source.restLength + 1 > size;
  const body = short ? mark + core : mark + core + source.shape.rest(index);
  const { field, kind } = source.shape.filler;
  const room = size - body.length - field.length - 7;
  if (room < 1) return `${body}}`;
  if (kind === 'reviews' && room > review.length) return `${body},"${field}":[${reviewsOf(room)}]}`;
  return `${body},"${field}":"${proseOf(room, index)}"}`;
}

function reviewsOf(room: number): string {
  const count = Math.max(1, Math.floor((room + 1) / (review.length + 1)));
  const text = count <= 400 ? reviews : `${review},`.repeat(count);
  return text.slice(0, count * (review.length + 1) - 1);
}

function proseOf(length: number, index: number): string {
  const start = (index * 37) % 5000;
  if (start + length <= prose.length) return prose.slice(start, start + length);
  return prose.repeat(Math.ceil(length / prose.length)).slice(0, length);
}

const errorRows = [
  '"url":"https://site.example/","error":"blocked","errorDescription":"HTTP 403 after 5 tries"}',
  '"status":"no_data","error_code":"NO_RESULTS","error":"Nothing found","scraped_at":"2026-12-02T02:11:09Z"}',
  '"#error":true,"#debug":{"requestId":"r1","url":"https://site.example/","statusCode":403,"retryCount":5,"errorMessages":["blocked"]}}',
] as const;
const errorRow = (index: number) => errorRows[index % errorRows.length] as string;

/** The items of a page as JSON texts; `count` is how many the dataset shows now. */
export function readItems(source: ItemSource, count: number, query: ItemQuery): string[] {
  const plain = !query.clean && !query.fields?.length && !query.omit?.length && !query.flatten?.length;
  const end = Math.min(count, query.offset + query.limit);
  const items: string[] = [];
  let bytes = 0;
  for (let at = query.offset; at < end && bytes < maxPageBytes; at++) {
    const item = renderItem(source, query.desc ? count - 1 - at : at);
    const shown = plain ? item : project(item, query);
    if (shown === null) continue;
    items.push(shown);
    bytes += shown.length;
  }
  return items;
}

/** `clean`, `fields`, `omit`, `flatten` as the API does them; null: dropped by `clean`. */
function project(item: string, query: ItemQuery): string | null {
  let row = JSON.parse(item) as Record<string, unknown>;
  const flatten = query.flatten?.length ? query.flatten : dotPrefixes(query.fields ?? []);
  if (flatten.length > 0) row = flattened(row, flatten);
  if (query.clean) row = Object.fromEntries(Object.entries(row).filter(([key]) => !key.startsWith('#')));
  if (query.fields?.length) {
    const kept = row;
    row = Object.fromEntries(
      query.fields.filter((name) => Object.hasOwn(kept, name)).map((name) => [name, kept[name]]),
    );
  }
  if (query.omit?.length) {
    const omit = new Set(query.omit);
    row = Object.fromEntries(Object.entries(row).filter(([key]) => !omit.has(key)));
  }
  return query.clean && Object.keys(row).length === 0 ? null : JSON.stringify(row);
}

function dotPrefixes(fields: readonly string[]): string[] {
  return [
    ...new Set(
      fields.filter((name) => name.indexOf('.') > 0).map((name) => name.slice(0, name.indexOf('.'))),
    ),
  ];
}

function flattened(row: Record<string, unknown>, names: readonly string[]): Record<string, unknown> {
  const out: Record<string, unknown> = {};
  const spread = (prefix: string, value: unknown): void => {
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) {
      for (const [key, inner] of Object.entries(value)) spread(`${prefix}.${key}`, inner);
    } else out[prefix] = value;
  };
  for (const [key, value] of Object.entries(row)) {
    if (names.includes(key)) spread(key, value);
    else out[key] = value;
  }
  return out;
}
