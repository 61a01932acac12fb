/**
 * Names of queues and Redis keys, in one place. Everything hangs under `prefix` (design A7), whose hash tag keeps all
 * queues of one Trawl in one cluster slot. Ids and batches are validated before they come here (`src/scrape`).
 */

export const publicQueue = 'scrape';
export const stages = ['start', 'poll', 'pages', 'abort'] as const;
export type Stage = (typeof stages)[number];

export function stageQueue(stage: Stage, server: string): string {
  return `${stage}-${server}`;
}

/** `<batch>.<id>-<attempt>-<stage>`: the attempt belongs in it, or a leftover job would end a re-park at once. */
export function stageJobId(scrape: string, attempt: number, stage: Stage): string {
  return `${scrape}-${attempt}-${stage}`;
}

/** The scrape and attempt a stage job belongs to; null when the id is not one of ours. */
export function parseStageJobId(jobId: string): { scrape: string; attempt: number; stage: Stage } | null {
  const match = /^(.+)-(\d{1,6})-(start|poll|pages|abort)$/.exec(jobId);
  if (match === null) return null;
  return { scrape: match[1] as string, attempt: Number(match[2]), stage: match[3] as Stage };
}

export class Keys {
  readonly waitingBuckets = 1024;

  constructor(readonly prefix: string) {}

  queue(name: string): string {
    return `${this.prefix}:${name}`;
  }

  /** BullMQ's own stream of what happens to public jobs. */
  get publicEvents(): string {
    return `${this.queue(publicQueue)}:events`;
  }

  job(queue: string, jobId: string): string {
    return `${this.prefix}:${queue}:${jobId}`;
  }

  lock(queue: string, jobId: string): string {
    return `${this.job(queue, jobId)}:lock`;
  }

  attempt(scrape: string): string {
    return `${this.prefix}:attempt:${scrape}`;
  }

  /** The looks at the run of a scrape that has settled, for its timeline. */
  looks(scrape: string): string {
    return `${this.prefix}:looks:${scrape}`;
  }

  /**
   * Hash: scrape → number of its attempt, for scrapes that only wait. So many buckets that each stays in Redis' compact
   * encoding with 500,000 scrapes waiting; their number is part of the stored format.
   */
  waiting(scrape: string): string {
    let hash = 0x811c9dc5;
    for (let index = 0; index < scrape.length; index += 1) {
      hash = Math.imul(hash ^ scrape.charCodeAt(index), 0x01000193);
    }
    return this.waitingBucket((hash >>> 0) % this.waitingBuckets);
  }

  waitingBucket(bucket: number): string {
    return `${this.prefix}:waiting:${bucket}`;
  }

  /** A log level asked for at run time, of a module or of `all`; it runs out by itself. */
  logLevel(target: string): string {
    return `${this.prefix}:log-level:${target}`;
  }

  /** Sorted set: scrapes started lately, by when. */
  recent(server: string): string {
    return `${this.prefix}:recent:${server}`;
  }

  batch(batch: string): string {
    return `${this.prefix}:batch:${batch}`;
  }

  /** Sorted set: a member a slot, its score the expiry (`+inf` once a run holds it). */
  slots(server: string): string {
    return `${this.prefix}:slots:${server}`;
  }

  /** Hash: MB held by each member of the slots. */
  slotMemory(server: string): string {
    return `${this.prefix}:slot-memory:${server}`;
  }

  /** Hash: pause, hold and cool-down of a server. */
  server(server: string): string {
    return `${this.prefix}:server:${server}`;
  }

  /** Hash: tool → its hold or pause. */
  tools(server: string): string {
    return `${this.prefix}:tools:${server}`;
  }

  /** Hash: scrape → a refusal nobody knows that it waits with, to see whether others of its tool meet it too. */
  refusals(server: string, tool: string): string {
    return `${this.tools(server)}:refused:${tool}`;
  }

  /** Set: scrapes of a tool whose starts were refused in a row, for a reason nobody knows. */
  refusalStreak(server: string, tool: string): string {
    return `${this.tools(server)}:streak:${tool}`;
  }

  /** List: the last verdicts on a tool, newest first, each `1` (bad) or `0` and which call counted it. */
  brakeWindow(server: string, tool: string): string {
    return `${this.tools(server)}:window:${tool}`;
  }

  /** Set: tools of which start jobs are set aside while they are held or paused. */
  parked(server: string): string {
    return `${this.prefix}:parked:${server}`;
  }

  /** Sorted set: the start jobs of a tool that are set aside, by the time they were. */
  parkedOf(server: string, tool: string): string {
    return `${this.parked(server)}:${tool}`;
  }

  /** Set of servers and tools with a recent change of hold; published to. */
  get wakeChannel(): string {
    return `${this.prefix}:wake`;
  }

  get events(): string {
    return `${this.prefix}:events`;
  }

  get intakeStream(): string {
    return `${this.prefix}:intake`;
  }

  get intakeList(): string {
    return `${this.prefix}:intake:list`;
  }

  get intakeRejected(): string {
    return `${this.prefix}:intake:rejected`;
  }

  /** The one job of the fleet that is worked on though it may be what crashes its workers. */
  get suspect(): string {
    return `${this.prefix}:suspect`;
  }

  /** Hash: a suspect → its turns that were not ended, by a crash each. */
  get suspectTurns(): string {
    return `${this.prefix}:suspect:turns`;
  }

  get leader(): string {
    return `${this.prefix}:leader`;
  }

  /** Claim of a run by one scrape, so that two never adopt the same, whichever configured server it came through. */
  claim(account: string, runId: string): string {
    return `${this.prefix}:claim:${account}:${runId}`;
  }

  /** When a run without an owner was first seen: the next leader of the fleet goes on from there. */
  sighted(account: string, runId: string): string {
    return `${this.prefix}:sighted:${account}:${runId}`;
  }
}
