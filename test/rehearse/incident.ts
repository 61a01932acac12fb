import type { Sim, SimOptions } from '../sim/index.js';
import type { Stack } from './stack.js';
import type { Traffic } from './traffic.js';
import type { Labels } from './webhook.js';

/** Where an incident plays: a server that nobody else uses, its simulator, and everything around them. */
export interface Scene {
  readonly stack: Stack;
  readonly server: string;
  readonly sim: Sim;
  readonly traffic: Traffic;
}

export interface Incident {
  /** Also the name of its server. */
  readonly name: string;
  /** What happens, for the table. */
  readonly what: string;
  /** The one alert that has to notify somebody; null: none may. */
  readonly expected: string | null;
  /** Tickets that its runbook says come with it. */
  readonly along?: readonly string[];
  /**
   * `server`: incidents on servers of their own, together with others; theirs are the alerts with that label. `source`: an
   * alert without a server, beside them. `fleet`: under all servers, so alone; everything that fires is theirs.
   */
  readonly scope: 'server' | 'source' | 'fleet';
  /** Of the simulator behind its server. */
  readonly sim?: Omit<SimOptions, 'port' | 'host'>;
  /** Laid over its server's entry in trawl.yaml. */
  readonly config?: Readonly<Record<string, unknown>>;
  /** Between two scrapes, ms; null: no traffic by itself. Default 3000. */
  readonly everyMs?: number | null;
  /** Before it begins, while all is well. */
  readonly before?: (scene: Scene) => Promise<void> | void;
  readonly cause: (scene: Scene) => Promise<void> | void;
  readonly heal: (scene: Scene) => Promise<void> | void;
  /** With `expected` null: how long it is looked at, in seconds of a real night. Else how long on after the alert. */
  readonly span?: number;
  /** The steady server goes on meanwhile; only of `fleet`, default true. */
  readonly steady?: boolean;
}

export function owns(incident: Incident, labels: Labels): boolean {
  switch (incident.scope) {
    case 'server':
      return labels.server === incident.name;
    case 'source':
      return labels.server === undefined && labels.alertname === incident.expected;
    case 'fleet':
      return true;
    default:
      return incident.scope satisfies never;
  }
}
