import { createHash } from 'node:crypto';
import type { ActorSpec } from './actor.js';
import { contactInfo, contentCrawler, ragBrowser } from './pages.js';
import { googlePlaces, googleReviews, recordedYellowPages, yellowPages } from './places.js';

/** Every Actor the simulated store knows. */
export const catalogue: readonly ActorSpec[] = [
  googlePlaces,
  yellowPages,
  contentCrawler,
  ragBrowser,
  googleReviews,
  contactInfo,
  recordedYellowPages,
];

/** The Actor of that name (`user/name`, `user~name`) or id; null: the store has none. */
export function findActor(nameOrId: string): ActorSpec | null {
  const name = nameOrId.replace(/^([^~]+)~/, '$1/');
  return catalogue.find((actor) => actor.name === name || actor.id === name) ?? null;
}

/**
 * The tool name of an Actor (apify-contract, Tools): `user/name` → `user--name`, a dot in the user → `-dot-`, over 64
 * characters cut and closed with 4 hex digits of sha256.
 */
export function toolNameOf(actorName: string): string {
  const slash = actorName.indexOf('/');
  const full = `${actorName.slice(0, slash).replaceAll('.', '-dot-')}--${actorName.slice(slash + 1)}`;
  if (full.length <= 64) return full;
  const digest = createHash('sha256').update(actorName).digest('hex').slice(0, 4);
  return `${full.slice(0, 59)}-${digest}`;
}
