import type { Queue } from 'bullmq';

export const yellowPages = 'trudax/yellow-pages-us-scraper';

/** A job as a producer would write it, but for server and batch. */
export type Job = Readonly<Record<string, unknown>>;

const usualJob = (index: number): Job => ({
  tool: yellowPages,
  input: { search: `plumbers ${index}`, location: 'Austin, TX' },
  deadline: '10m',
});

/** Submits scrapes to one server, evenly, as long as it runs. */
export class Traffic {
  /** What the next jobs look like. */
  shape: (index: number) => Job = usualJob;
  submitted = 0;
  private timer: NodeJS.Timeout | null = null;

  constructor(
    private readonly queue: Queue,
    private readonly server: string,
  ) {}

  /** Steers the runs of the next jobs: the simulator's input key `sim`, and fields of the job. */
  steer(sim: Job, fields: Job = {}): void {
    this.shape = (index) => {
      const job = usualJob(index);
      return { ...job, input: { ...(job.input as object), sim }, ...fields };
    };
  }

  asUsual(): void {
    this.shape = usualJob;
  }

  start(everyMs: number): void {
    this.stop();
    const next = () => void this.submit(1).catch(() => {});
    this.timer = setInterval(next, everyMs);
    next();
  }

  stop(): void {
    if (this.timer !== null) clearInterval(this.timer);
    this.timer = null;
  }

  /** At once. */
  async submit(count: number): Promise<void> {
    const jobs = Array.from({ length: count }, () => {
      const index = this.submitted++;
      const data = { batch: this.server, server: this.server, ...this.shape(index) };
      return { name: 'scrape', data, opts: { jobId: `${this.server}.s${index}` } };
    });
    await this.queue.addBulk(jobs);
  }
}
