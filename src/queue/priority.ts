/**
 * Places in the backlog. BullMQ priorities run from 1 (first) to 2,097,151; eight bands of equal width, one for each
 * scrape priority 0–7, leave room inside a band for fair shares between batches (design B7). 0 would jump every queue,
 * so start jobs always have at least 1.
 */
const band = 2 ** 18;
const last = 2_097_151;
const defaultPriority = 3;

function startPriority(priority: number): number {
  return Math.min(last, Math.max(0, Math.min(7, Math.trunc(priority))) * band + 1);
}

/** A plain BullMQ producer's own `priority` (0: none, else 1 first) keeps its order among such producers. */
export function startPriorityOf(
  scrapePriority: number | undefined,
  bullPriority: number | undefined,
): number {
  if (scrapePriority !== undefined) return startPriority(scrapePriority);
  if (bullPriority === undefined || bullPriority <= 0) return startPriority(defaultPriority);
  if (bullPriority <= 8) return startPriority(bullPriority - 1);
  return Math.min(last, 7 * band + 1 + Math.min(bullPriority - 8, band - 2));
}
