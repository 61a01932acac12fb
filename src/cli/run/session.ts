import { submitScrapes } from '../../queue/submit.js';
import { createRedis } from '../../redis/connection.js';
import { jobKey } from '../../scrape/identity.js';
import type { Fleet } from '../fleet.js';
import { counted, span } from '../format.js';
import { type CheckedJobs, chunks } from '../jobs.js';
import { errorColors, say } from '../output.js';
import type { Signals } from '../signals.js';
import type { WorkerProcess } from '../worker-process.js';
import { flying } from './drain.js';
import { Follower, pause } from './follow.js';
import type { Notices } from './notices.js';
import { LiveProgress, PlainProgress, type Progress } from './progress.js';
import { Rate, type RunView, type ServerView } from './state.js';
import type { Survey } from './survey.js';

export interface SessionOptions {
  readonly worker: WorkerProcess;
  readonly fleet: Fleet;
  readonly jobs: CheckedJobs;
  readonly survey: Survey;
  readonly notices: Notices;
  readonly signals: Signals;
  /** Redis may be away this long, in ms. */
  readonly redisWaitMs: number;
}

const redrawMs = 250;
const lookMs = 1_000;

/**
 * How the work ended. `drained`: Ctrl-C, and the runs under way have ended. `stopped`: SIGTERM or SIGHUP, stop as a daemon
 * does. `left`: a second signal, let go of everything as it is.
 */
export type End = 'settled' | 'drained' | 'stopped' | 'left' | 'redis_away';

/**
 * Submits and works until all is settled. The first signal ends submission and starts, and the runs under way are waited
 * for; the second ends it at once. SIGTERM does not wait for runs either.
 *
 * ```
 *   submitting ──► working ──► settled
 *        │  signal    │ signal
 *        └────────────┴──► finishing ──► drained
 *   any of them: SIGTERM ──► stopped;  second signal ──► left;  Redis away too long ──► redis_away
 * ```
 */
export class RunSession {
  submitted = 0;
  private readonly progress: Progress;
  private readonly rate = new Rate();
  private readonly over = new AbortController();
  private readonly halt = new AbortController();
  private servers: readonly ServerView[] = [];
  private phase: RunView['phase'] = 'submitting';
  private heardAt = Date.now();
  private wake: () => void = () => {};

  constructor(private readonly session: SessionOptions) {
    const stream = process.stderr;
    this.progress = stream.isTTY
      ? new LiveProgress(stream, errorColors(), Date.now)
      : new PlainProgress(stream, Date.now);
    session.notices.write = (line) => this.progress.note(line);
  }

  async work(): Promise<End> {
    const { worker, signals, survey, fleet } = this.session;
    const { ctx } = worker.daemon;
    const blocking = createRedis(worker.redisTarget, { role: 'worker', log: ctx.log, name: 'trawl-follow' });
    const deps = { redis: fleet.redis, blocking, keys: fleet.keys, sink: fleet.sink };
    const follower = new Follower(deps, survey.tally, () => this.wake());
    const timers = [setInterval(() => this.draw(), redrawMs), setInterval(() => void this.look(), lookMs)];
    try {
      await worker.start();
      await this.look();
      this.draw();
      const failures = [follower.follow(survey.eventsFrom, this.over.signal), this.redisAway()];
      const stopped = signals.first.then((signal) =>
        signal === 'SIGINT' ? this.drain() : ('stopped' as const),
      );
      return await Promise.race([
        this.submitAndWait(),
        stopped,
        signals.second.then(() => 'left' as const),
        ...failures.map((failure) => failure.then(() => 'redis_away' as const)),
      ]);
    } finally {
      this.over.abort();
      this.halt.abort();
      for (const timer of timers) clearInterval(timer);
      this.draw();
      this.progress.end();
      this.session.notices.write = say;
      blocking.disconnect();
    }
  }

  /** Never resolves once it was halted: the drain says when it is over. */
  private async submitAndWait(): Promise<'settled'> {
    const { jobs, survey } = this.session;
    const { tally } = survey;
    for await (const chunk of chunks(jobs)) {
      const due = chunk.filter((scrape) => !survey.settled.has(jobKey(scrape.batch, scrape.id)));
      if (due.length > 0) await this.submit(due);
      await this.room();
      if (this.halt.signal.aborted) return new Promise(() => {});
    }
    if (this.phase === 'submitting') this.phase = 'working';
    while (tally.openCount > 0) await this.change();
    return 'settled';
  }

  private async submit(chunk: Parameters<typeof submitScrapes>[1]): Promise<void> {
    const { fleet, survey } = this.session;
    // Before they are submitted: the first may have ended before the last is in.
    for (const scrape of chunk) survey.tally.expect(jobKey(scrape.batch, scrape.id), scrape.onEmpty);
    for (const result of await submitScrapes(fleet, chunk)) {
      switch (result.result) {
        case 'submitted':
          this.submitted += 1;
          break;
        case 'known':
          break;
        case 'settled':
          survey.tally.settle(result.key, result.outcome);
          break;
        case 'conflict':
          // Somebody else submitted it since the survey.
          this.progress.note(
            `${result.key} was submitted by another program with another tool, input or server`,
          );
          survey.tally.remove(result.key);
          break;
        default:
          result satisfies never;
      }
    }
  }

  /** A file of millions does not have to lie in Redis at once. */
  private async room(): Promise<void> {
    const { fleet, survey } = this.session;
    while (survey.tally.openCount >= fleet.config.intake.backlog && !this.halt.signal.aborted)
      await this.change();
  }

  private async drain(): Promise<'drained'> {
    const { worker, fleet, survey } = this.session;
    this.phase = 'finishing';
    this.halt.abort();
    this.progress.note('Nothing more is started …');
    await worker.daemon.quiet();
    const seen = new Set<string>();
    let flight = await flying(fleet, survey.tally, seen);
    this.progress.note(finishingLine(flight));
    while (flight.count > 0) {
      await pause(redrawMs, this.over.signal);
      flight = await flying(fleet, survey.tally, seen);
    }
    return 'drained';
  }

  /** Resolves when Redis has been away for too long. */
  private async redisAway(): Promise<void> {
    while (!this.over.signal.aborted) {
      await pause(lookMs, this.over.signal);
      if (this.awayMs() > this.session.redisWaitMs) return;
    }
    await new Promise(() => {});
  }

  private awayMs(): number {
    return Date.now() - this.heardAt;
  }

  /** Resolves when something was settled, or soon anyway. */
  private change(): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, redrawMs);
      this.wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }

  private looking = false;

  private async look(): Promise<void> {
    if (this.looking) return;
    this.looking = true;
    const { fleet, survey } = this.session;
    try {
      this.servers = await Promise.all(
        Object.values(fleet.config.servers).map(async ({ name, limits }) => ({
          name,
          runsInFlight: await fleet.redis.zcount(fleet.keys.slots(name), '+inf', '+inf'),
          runSlots: limits.runs,
          state: await fleet.holds.state(name),
        })),
      );
      this.heardAt = Date.now();
      this.rate.sample(Date.now(), survey.tally.settled);
    } catch {
      // The connection's own log says what is wrong; here only the time since the last answer counts.
    } finally {
      this.looking = false;
    }
  }

  private draw(): void {
    const { jobs, survey } = this.session;
    const away = this.awayMs();
    this.progress.show({
      batch: jobs.batch,
      tally: survey.tally,
      submitted: this.submitted,
      servers: this.servers,
      rate: this.rate,
      phase: this.phase,
      redisAwayMs: away > 5_000 ? away : null,
    });
  }
}

function finishingLine({ count, latestMs }: { count: number; latestMs: number | null }): string {
  if (count === 0) return 'No runs are under way.';
  const longest = latestMs === null ? '' : ` (at most ${span(latestMs - Date.now())} more)`;
  return (
    `Finishing ${counted(count, 'run')} under way${longest}. Press Ctrl-C again to leave at once: they go on at the server, ` +
    'and the same command picks them up.'
  );
}
