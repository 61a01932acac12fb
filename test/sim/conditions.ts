import { z } from 'zod';
import { refusalNames } from './refusals.js';

/**
 * The state of the simulated world, changeable while it runs (`sim.set`, `POST /sim/conditions`). README.md
 * documents each key.
 */
export const conditionsSchema = z.strictObject({
  mix: z.enum(['good-night', 'bad-night', 'fixed']),
  badTool: z.string(),
  /** null: any bearer token will do. */
  tokens: z.array(z.string()).nullable(),
  authMode: z.enum(['http_401', 'tool_error', 'not_found', 'empty_tools']),
  toolsListEmpty: z.boolean(),
  hiddenTools: z.array(z.string()),
  strip: z.enum(['none', 'structured', 'json']),
  answers: z.enum(['sse', 'json']),
  standingStream: z.boolean(),
  latencyMs: z.tuple([z.number().min(0).max(600_000), z.number().min(0).max(600_000)]),
  waitSecsCap: z.int().min(0).max(45),
  maxRuns: z.int().min(0).nullable(),
  memoryMb: z.int().min(0).nullable(),
  requestsPerSecond: z.number().positive().nullable(),
  retryAfterSecs: z.number().min(0).max(3600),
  bodyLimit: z.int().min(1).nullable(),
  emptyTools: z.array(z.string()),
  failingTools: z.array(z.string()),
  changedSchemas: z.array(z.string()),
  refusals: z.record(z.string(), z.enum(refusalNames)),
  refuseBare: z.boolean(),
  hugeBytes: z.int().min(1).max(400_000_000),
});

export type Conditions = z.infer<typeof conditionsSchema>;

/** An ordinary good server with SSE answers, as the real one gives them. */
export const defaultConditions: Conditions = {
  mix: 'good-night',
  badTool: 'trudax/yellow-pages-us-scraper',
  tokens: null,
  authMode: 'http_401',
  toolsListEmpty: false,
  hiddenTools: [],
  strip: 'none',
  answers: 'sse',
  standingStream: false,
  latencyMs: [0, 0],
  waitSecsCap: 45,
  maxRuns: null,
  memoryMb: null,
  requestsPerSecond: null,
  retryAfterSecs: 1,
  bodyLimit: null,
  emptyTools: [],
  failingTools: [],
  changedSchemas: [],
  refusals: {},
  refuseBare: false,
  hugeBytes: 48 * 1024 * 1024,
};
