import type { Scrape } from './types.js';

/**
 * A scrape as the job document it came from (design A2), for Redis: what equals a fixed default is left out, because a
 * hundred thousand of these wait there at once.
 */
export function jobData(scrape: Scrape): Record<string, unknown> {
  const { maxItems, maxTotalChargeUsd, timeoutMs, memory, build } = scrape.options;
  const options = {
    ...(maxItems === undefined ? {} : { maxItems }),
    ...(maxTotalChargeUsd === undefined ? {} : { maxTotalChargeUsd }),
    ...(timeoutMs === undefined ? {} : { timeout: timeoutMs / 1000 }),
    ...(memory === undefined ? {} : { memory }),
    ...(build === undefined ? {} : { build }),
  };
  return {
    id: scrape.id,
    batch: scrape.batch,
    server: scrape.server,
    tool: scrape.tool,
    input: scrape.input,
    deadline: scrape.deadlineMs / 1000,
    ...(scrape.expiresInMs === null ? {} : { expiresIn: scrape.expiresInMs / 1000 }),
    ...(scrape.priority === 3 ? {} : { priority: scrape.priority }),
    ...(scrape.retries === 0 ? {} : { retries: scrape.retries }),
    ...(scrape.minItems === 1 ? {} : { minItems: scrape.minItems }),
    ...(scrape.onEmpty === 'warn' ? {} : { onEmpty: scrape.onEmpty }),
    ...(Object.keys(options).length === 0 ? {} : { options }),
    ...(scrape.fields.length === 0 ? {} : { fields: scrape.fields }),
    ...(scrape.records.length === 0 ? {} : { records: scrape.records }),
    ...(scrape.meta === null || scrape.meta === undefined ? {} : { meta: scrape.meta }),
  };
}
