import type { Config } from '../../config.js';
import type { Fleet } from '../fleet.js';
import { type CheckedJobs, Conflicts, lookUpAll } from '../jobs.js';
import { Estimate } from '../plan/estimate.js';
import { readHistory } from '../plan/history.js';
import { endOfEvents } from './follow.js';
import { Tally } from './tally.js';

/** What is known of a file's scrapes before anything is submitted. */
export interface Survey {
  readonly tally: Tally;
  /** Of what is still to be started. */
  readonly estimate: Estimate;
  /** Every batch that the file names. */
  readonly batches: readonly string[];
  /** These need no submission. */
  readonly settled: ReadonlySet<string>;
  /** Position in the event stream from before the look: what ends from then on is found from there. */
  readonly eventsFrom: string;
}

/**
 * Looks up every scrape of the file; changes nothing.
 * @throws TrawlError `job_conflict` when some are known with another tool, input or server
 */
export async function survey(jobs: CheckedJobs, fleet: Fleet, config: Config): Promise<Survey> {
  const eventsFrom = await endOfEvents(fleet.redis, fleet.keys);
  const tally = new Tally(jobs.report.scrapes);
  const estimate = new Estimate(config, await readHistory(config.results.dir));
  const batches = new Set<string>();
  const settled = new Set<string>();
  const conflicts = new Conflicts();
  const deps = { redis: { client: fleet.redis, keys: fleet.keys }, sink: fleet.sink };
  for await (const { scrape, key, known } of lookUpAll(jobs, deps)) {
    batches.add(scrape.batch);
    switch (known.state) {
      case 'fresh':
        estimate.add(scrape);
        break;
      case 'waiting':
        estimate.add(scrape);
        tally.expect(key, scrape.onEmpty);
        break;
      case 'under_way':
        tally.expect(key, scrape.onEmpty);
        break;
      case 'settled':
        tally.found(key, known.outcome, scrape.onEmpty);
        settled.add(key);
        break;
      case 'conflict':
        conflicts.add(key);
        break;
      default:
        known satisfies never;
    }
  }
  conflicts.throwIfAny(jobs.label);
  return { tally, estimate, batches: [...batches], settled, eventsFrom };
}
