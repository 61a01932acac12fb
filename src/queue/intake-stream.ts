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

/** The consumer group of the intake stream. */
export const intakeGroup = 'trawl';

/** Puts an entry's job at the end of `out`; shared by the scripts. */
const add = `
local out, bytes = {}, 0
local function add(id, fields)
  local job
  for i = 1, #fields, 2 do
    bytes = bytes + #fields[i] + #fields[i + 1]
    if fields[i] == 'job' and not job then job = fields[i + 1] end
  end
  local length = -1
  if job then
    length = #job
    if length > longest then job = string.sub(job, 1, excerpt) end
  else
    local parts = {}
    for i = 1, math.min(#fields, 20) do parts[i] = string.sub(fields[i], 1, 200) end
    job = string.sub(table.concat(parts, ' '), 1, excerpt)
  end
  out[#out + 1] = id
  out[#out + 1] = tostring(length)
  out[#out + 1] = job
end`;

/**
 * KEYS stream. ARGV group, consumer, entries, bytes, longest, excerpt, from ('>': new ones, '0': what this consumer has
 * in hand). One entry a call inside, because XREADGROUP bounds no bytes.
 */
const take = `
local longest, excerpt = tonumber(ARGV[5]), tonumber(ARGV[6])
${add}
local from = ARGV[7]
while #out < 3 * tonumber(ARGV[3]) and bytes < tonumber(ARGV[4]) do
  local reply = redis.call('XREADGROUP', 'GROUP', ARGV[1], ARGV[2], 'COUNT', 1, 'STREAMS', KEYS[1], from)
  local entry = reply and reply[1] and reply[1][2][1]
  if not entry then break end
  if from ~= '>' then from = entry[1] end
  if entry[2] then add(entry[1], entry[2]) else redis.call('XACK', KEYS[1], ARGV[1], entry[1]) end
end
return out`;

/**
 * KEYS stream. ARGV group, consumer, entries, bytes, longest, excerpt, idle ms. Takes over what no consumer has
 * acknowledged for so long, and forgets consumers that have nothing in hand and have long been silent: each process
 * is one, and they would pile up for ever.
 */
const claim = `
local longest, excerpt = tonumber(ARGV[5]), tonumber(ARGV[6])
${add}
local pending = redis.call('XPENDING', KEYS[1], ARGV[1], 'IDLE', ARGV[7], '-', '+', ARGV[3])
for _, seen in ipairs(pending) do
  if bytes >= tonumber(ARGV[4]) then break end
  local claimed = redis.call('XCLAIM', KEYS[1], ARGV[1], ARGV[2], ARGV[7], seen[1])
  local entry = claimed and claimed[1]
  if entry and entry[2] then add(entry[1], entry[2]) else redis.call('XACK', KEYS[1], ARGV[1], seen[1]) end
end
for _, info in ipairs(redis.call('XINFO', 'CONSUMERS', KEYS[1], ARGV[1])) do
  local consumer = {}
  for i = 1, #info, 2 do consumer[info[i]] = info[i + 1] end
  if consumer.pending == 0 and consumer.idle > 10 * tonumber(ARGV[7]) then
    redis.call('XGROUP', 'DELCONSUMER', KEYS[1], ARGV[1], consumer.name)
  end
end
return out`;

/** KEYS stream. ARGV group, id …: acknowledged, and deleted as well, or the stream would grow for ever. */
const done = `
for i = 2, #ARGV do
  redis.call('XACK', KEYS[1], ARGV[1], ARGV[i])
  redis.call('XDEL', KEYS[1], ARGV[i])
end
return #ARGV - 1`;

/** KEYS stream. ARGV group, consumer: gone unless it has entries in hand, which another will claim. */
const leave = `
if redis.call('EXISTS', KEYS[1]) == 0 then return 0 end
local pending = redis.pcall('XPENDING', KEYS[1], ARGV[1], '-', '+', 1, ARGV[2])
if pending.err or #pending > 0 then return 0 end
return redis.call('XGROUP', 'DELCONSUMER', KEYS[1], ARGV[1], ARGV[2])`;

/**
 * The intake stream: XADD with a field `job`, read as one consumer of a group. `ref` is the entry's id, so an entry
 * that is read twice after a crash is the same job.
 */
export class IntakeStream implements IntakeSource {
  private readonly key: string;
  private readonly scripts: Record<'take' | 'claim' | 'done' | 'leave', Script>;
  private claimAt = 0;
  private again = false;

  /** @param claimAfterMs a consumer that has not acknowledged for so long is dead, and its entries are another's */
  constructor(
    private readonly redis: Redis,
    keys: Keys,
    private readonly consumer: string,
    private readonly claimAfterMs: number,
    private readonly now: () => number,
  ) {
    this.key = keys.intakeStream;
    this.scripts = {
      take: script(redis, 'trawlStreamTake', 1, take),
      claim: script(redis, 'trawlStreamClaim', 1, claim),
      done: script(redis, 'trawlStreamDone', 1, done),
      leave: script(redis, 'trawlStreamLeave', 1, leave),
    };
  }

  async take({ entries, bytes, longest }: TakeBounds): Promise<IntakeEntry[]> {
    const bounds = [intakeGroup, this.consumer, entries, bytes, longest, excerpt];
    try {
      if (this.now() >= this.claimAt) {
        const claimed = readEntries(await this.scripts.claim(this.key, ...bounds, this.claimAfterMs));
        // As long as there is more to take over, it goes first: it has waited the longest.
        if (claimed.length > 0) return claimed;
        this.claimAt = this.now() + this.claimAfterMs / 4;
      }
      if (this.again) {
        const inHand = readEntries(await this.scripts.take(this.key, ...bounds, '0'));
        if (inHand.length > 0) return inHand;
        this.again = false;
      }
      return readEntries(await this.scripts.take(this.key, ...bounds, '>'));
    } catch (error) {
      // Also after somebody deleted the stream.
      if (!(error instanceof Error) || !error.message.includes('NOGROUP')) throw error;
      await this.createGroup();
      return [];
    }
  }

  async done(entries: readonly IntakeEntry[]): Promise<void> {
    await this.scripts.done(this.key, intakeGroup, ...entries.map((entry) => entry.ref));
  }

  failed(): void {
    this.again = true;
  }

  async leave(): Promise<void> {
    await this.scripts.leave(this.key, intakeGroup, this.consumer);
  }

  private async createGroup(): Promise<void> {
    try {
      await this.redis.xgroup('CREATE', this.key, intakeGroup, '0', 'MKSTREAM');
    } catch (error) {
      if (!(error instanceof Error) || !error.message.includes('BUSYGROUP')) throw error;
    }
  }
}
