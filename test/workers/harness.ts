import { type Sim, type SimOptions, startSim } from '../sim/index.js';
import { Fleet, type FleetParts } from './fleet.js';

export const yellowPages = 'trudax/yellow-pages-us-scraper';
export const maps = 'compass/crawler-google-places';

export interface BenchOptions {
  readonly sim?: SimOptions;
  /** Laid over the test configuration, as in trawl.yaml. */
  readonly config?: Record<string, unknown>;
  readonly server?: Record<string, unknown>;
  readonly limits?: Record<string, unknown>;
}

/** A fleet in front of the simulator over HTTP. */
export class Bench extends Fleet {
  private readonly closers: (() => unknown)[] = [];

  private constructor(
    parts: FleetParts,
    readonly sim: Sim,
  ) {
    super(parts);
  }

  static async open(options: BenchOptions = {}): Promise<Bench> {
    const sim = await startSim(options.sim ?? { conditions: { mix: 'fixed' } });
    const apify = {
      url: sim.url,
      token: 'test-token-canary',
      tools: [yellowPages, maps],
      limits: { runs: 20, requestsPerSecond: 1000, ...options.limits },
      ...options.server,
    };
    return new Bench(await Fleet.parts({ apify }, options.config ?? {}), sim);
  }

  /** Without a tool: the yellow pages. */
  override async add(
    id: string,
    job: Record<string, unknown>,
    options: Record<string, unknown> = {},
  ): Promise<void> {
    await super.add(id, { tool: yellowPages, ...job }, options);
  }

  onClose(close: () => unknown): void {
    this.closers.push(close);
  }

  override async close(): Promise<void> {
    for (const close of this.closers) await close();
    await super.close();
    await this.sim.close();
  }
}
