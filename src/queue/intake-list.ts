import type { Redis } from 'ioredis';
import {
  excerpt,
  type IntakeEntry,
  type IntakeSource,
  readEntries,
  type Script,
  script,
  type TakeBounds,
} from './intake-source.js';
import type { Keys } from './names.js';

/**
 * KEYS list, taken list of this process, owners, counter. ARGV entries, bytes, longest, excerpt, ms after which a silent
 * owner is dead. What is in hand already, or was in a dead process's hands, comes first. A job gets its number in the
 * same step in which it is taken: `<ms>-<count>/<bytes>:<job>`, so that it keeps it whoever finishes it; the time is in it
 * because the counter begins anew when Redis loses its data, and the results on disk do not. Of a job that is far too
 * large only the beginning stays.
 */
const take = `
local t = redis.call('TIME')
local now = t[1] * 1000 + math.floor(t[2] / 1000)
local most, budget, longest, excerpt = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local dead = redis.call('ZRANGEBYSCORE', KEYS[3], '-inf', now - tonumber(ARGV[5]), 'LIMIT', 0, 10)
for _, list in ipairs(dead) do
  if list ~= KEYS[2] then
    while redis.call('LMOVE', list, KEYS[2], 'RIGHT', 'LEFT') do end
    redis.call('ZREM', KEYS[3], list)
  end
end
local out, bytes = {}, 0
local function add(numbered)
  local ref, length, at = string.match(numbered, '^([%d-]+)/(%d+):()')
  bytes = bytes + #numbered
  out[#out + 1] = ref
  out[#out + 1] = length
  out[#out + 1] = string.sub(numbered, at)
end
for i = 1, redis.call('LLEN', KEYS[2]) do
  if #out >= 3 * most or bytes >= budget then break end
  add(redis.call('LINDEX', KEYS[2], -i))
end
while #out < 3 * most and bytes < budget do
  local job = redis.call('LMOVE', KEYS[1], KEYS[2], 'RIGHT', 'LEFT')
  if not job then break end
  local length = #job
  if length > longest then
    bytes = bytes + length
    job = string.sub(job, 1, excerpt)
  end
  local numbered = string.format('%.0f-%d/%d:', now, redis.call('INCR', KEYS[4]), length) .. job
  redis.call('LSET', KEYS[2], 0, numbered)
  add(numbered)
end
if #out > 0 then redis.call('ZADD', KEYS[3], now, KEYS[2]) end
return out`;

/**
 * KEYS taken list, owners. ARGV number …: the oldest of the list, taken off as long as they are those; after a freeze
 * they may be another's by now.
 */
const done = `
for i = 1, #ARGV do
  local oldest = redis.call('LINDEX', KEYS[1], -1)
  if oldest and string.sub(oldest, 1, #ARGV[i] + 1) == ARGV[i] .. '/' then redis.call('RPOP', KEYS[1]) end
end
if redis.call('EXISTS', KEYS[1]) == 0 then redis.call('ZREM', KEYS[2], KEYS[1]) end
return 1`;

/** KEYS taken list, owners: what is left in hand is anybody's at once. */
const leave = `
if redis.call('EXISTS', KEYS[1]) == 1 then redis.call('ZADD', KEYS[2], 0, KEYS[1]) else redis.call('ZREM', KEYS[2], KEYS[1]) end
return 1`;

/**
 * The intake list: LPUSH, taken from the other end with LMOVE onto a list of this process. A job's `ref` is its number.
 */
export class IntakeList implements IntakeSource {
  private readonly list: string;
  private readonly taken: string;
  private readonly owners: string;
  private readonly count: string;
  private readonly scripts: Record<'take' | 'done' | 'leave', Script>;

  /** @param claimAfterMs a process that has had jobs in hand for so long is dead, and they are another's */
  constructor(
    redis: Redis,
    keys: Keys,
    owner: string,
    private readonly claimAfterMs: number,
  ) {
    this.list = keys.intakeList;
    this.taken = `${keys.intakeList}:taken:${owner}`;
    this.owners = `${keys.intakeList}:owners`;
    this.count = `${keys.intakeList}:count`;
    this.scripts = {
      take: script(redis, 'trawlListTake', 4, take),
      done: script(redis, 'trawlListDone', 2, done),
      leave: script(redis, 'trawlListLeave', 2, leave),
    };
  }

  async take({ entries, bytes, longest }: TakeBounds): Promise<IntakeEntry[]> {
    const keys = [this.list, this.taken, this.owners, this.count];
    return readEntries(await this.scripts.take(...keys, entries, bytes, longest, excerpt, this.claimAfterMs));
  }

  async done(entries: readonly IntakeEntry[]): Promise<void> {
    await this.scripts.done(this.taken, this.owners, ...entries.map((entry) => entry.ref));
  }

  /** What is in hand comes first in every `take`. */
  failed(): void {}

  async leave(): Promise<void> {
    await this.scripts.leave(this.taken, this.owners);
  }
}
