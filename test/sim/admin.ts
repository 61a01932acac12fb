import type { IncomingMessage, ServerResponse } from 'node:http';
import { z } from 'zod';
import { conditionsSchema } from './conditions.js';
import { faultRuleSchema } from './faults.js';
import type { Sim } from './index.js';
import { endStatuses } from './steering.js';
import { readBody, sendJson } from './transport.js';

const finishBody = z.strictObject({
  runId: z.string(),
  status: z.enum(endStatuses).default('SUCCEEDED'),
  items: z.int().min(0).optional(),
});
const resetBody = z.strictObject({ sessions: z.boolean().default(false) });
const downBody = z.strictObject({ secs: z.number().min(0).max(86_400) });
const advanceBody = z.strictObject({
  secs: z
    .number()
    .min(0)
    .max(10 * 86_400),
});
const clearBody = z.strictObject({ id: z.int().optional() });

/** The steering wheel over HTTP, for other processes: `/sim/…`, documented in README.md. */
export async function handleAdmin(
  sim: Sim,
  request: IncomingMessage,
  response: ServerResponse,
  url: URL,
): Promise<void> {
  const answer = (value: unknown, status = 200) => sendJson(response, status, `${JSON.stringify(value)}\n`);
  try {
    const route = `${request.method} ${url.pathname}`;
    if (route === 'GET /sim/stats') return answer(sim.stats());
    if (route === 'GET /sim/ledger') return answer(ledgerPage(sim, url.searchParams));
    if (route === 'GET /sim/conditions') return answer(sim.conditions);
    if (route === 'GET /sim/faults') {
      return answer({ rules: sim.faults.list(), fired: Object.fromEntries(sim.faults.fired) });
    }
    if (route === 'GET /sim/runs') return answer(sim.runs());
    const body = await jsonBody(request);
    switch (route) {
      case 'POST /sim/conditions':
        sim.set(conditionsSchema.partial().parse(body));
        return answer(sim.conditions);
      case 'POST /sim/faults': {
        const rules = z.array(faultRuleSchema).parse(Array.isArray(body) ? body : [body]);
        return answer({ ids: rules.map((rule) => sim.faults.add(rule)) });
      }
      case 'POST /sim/faults/clear':
        sim.faults.clear(clearBody.parse(body).id);
        return answer({ rules: sim.faults.list() });
      case 'POST /sim/sessions/drop':
        return answer({ dropped: sim.dropSessions() });
      case 'POST /sim/finish': {
        const { runId, status, items } = finishBody.parse(body);
        return answer({ finished: sim.finish(runId, status, items ?? null) });
      }
      case 'POST /sim/advance':
        sim.advance(advanceBody.parse(body).secs * 1000);
        return answer({ now: sim.now() });
      case 'POST /sim/down': {
        const { secs } = downBody.parse(body);
        response.once('finish', () => void sim.down(secs * 1000));
        return answer({ downForSecs: secs });
      }
      case 'POST /sim/reset':
        sim.reset(resetBody.parse(body));
        return answer({ reset: true });
      default:
        return answer({ error: `no such route: ${route}` }, 404);
    }
  } catch (error) {
    answer({ error: error instanceof z.ZodError ? z.prettifyError(error) : String(error) }, 400);
  }
}

function ledgerPage(sim: Sim, query: URLSearchParams) {
  const number = (key: string) => (query.has(key) ? Number(query.get(key)) : undefined);
  const since = number('since');
  const limit = number('limit');
  const filter = {
    kind: query.get('kind')?.split(',') ?? [],
    ...(query.has('runId') ? { runId: String(query.get('runId')) } : {}),
    ...(query.has('dataset') ? { dataset: String(query.get('dataset')) } : {}),
    ...(query.has('actor') ? { actor: String(query.get('actor')) } : {}),
    ...(since === undefined ? {} : { since }),
    limit: limit ?? 100_000,
  };
  return { dropped: sim.ledger.dropped, entries: sim.ledger.entries(filter) };
}

async function jsonBody(request: IncomingMessage): Promise<unknown> {
  const text = await readBody(request, 10 * 1024 * 1024);
  return text.trim() === '' ? {} : (JSON.parse(text) as unknown);
}
