import { now } from './time.js';

/** Run slots, from the reservation to the release, and starts of late. */
export const slotScripts = {
  /**
   * Reserves up to `want` run slots for 5 s, before jobs are taken. KEYS slots, server state. ARGV limit, want, lifetime,
   * member prefix, probe interval. → {granted, reason ('' free, 'full' or a hold), ms until it is worth asking again, when the
   * next probe is due ('' when this is none)}
   */
  trawlReserve: {
    keys: 2,
    lua: `${now}
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', '(' .. now)
local s = redis.call('HMGET', KEYS[2], 'paused', 'held', 'probeAt', 'coolUntil', 'penalty', 'penaltyUntil', 'coolReason')
if s[1] then return {0, 'paused', 5000, ''} end
local limit = tonumber(ARGV[1])
local want = tonumber(ARGV[2])
if s[6] and tonumber(s[6]) > now then limit = math.max(1, limit - tonumber(s[5])) end
if s[4] and tonumber(s[4]) > now then return {0, s[7] or 'capacity', tonumber(s[4]) - now, ''} end
local probeAt = tonumber(s[3] or '0')
if s[2] and probeAt > now then return {0, s[2], probeAt - now, ''} end
local free = limit - redis.call('ZCARD', KEYS[1])
if free <= 0 then return {0, 'full', 1000, ''} end
local due = ''
if s[2] then
  due = string.format('%.0f', now + tonumber(ARGV[5]))
  redis.call('HSET', KEYS[2], 'probeAt', due)
  want = 1
end
local n = math.min(free, want)
for i = 1, n do redis.call('ZADD', KEYS[1], now + tonumber(ARGV[3]), ARGV[4] .. i) end
return {n, s[2] or '', 0, due}`,
  },
  /**
   * Gives a probe back that nothing was started with. KEYS server state. ARGV when the next was to be due: another that
   * was let through, or another hold, stays as it is. → 1 | 0
   */
  trawlSpareProbe: {
    keys: 1,
    lua: `
if redis.call('HGET', KEYS[1], 'probeAt') ~= ARGV[1] then return 0 end
return redis.call('HDEL', KEYS[1], 'probeAt')`,
  },
  /**
   * Gives a reserved slot to a scrape whose start is under way. KEYS slots, memory. ARGV reservation, scrape, lifetime,
   * limit, MB of this run, MB limit (0: none). → 1 | 0 no slot any more | -1 not enough memory now
   */
  trawlBind: {
    keys: 2,
    lua: `${now}
redis.call('ZREM', KEYS[1], ARGV[1])
local score = redis.call('ZSCORE', KEYS[1], ARGV[2])
if not score then
  redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', '(' .. now)
  if redis.call('ZCARD', KEYS[1]) >= tonumber(ARGV[4]) then return 0 end
  if tonumber(ARGV[6]) > 0 then
    local sum = tonumber(ARGV[5])
    local held = redis.call('HGETALL', KEYS[2])
    for i = 1, #held, 2 do
      if redis.call('ZSCORE', KEYS[1], held[i]) then sum = sum + tonumber(held[i + 1]) else redis.call('HDEL', KEYS[2], held[i]) end
    end
    if sum > tonumber(ARGV[6]) then return -1 end
  end
end
if tonumber(ARGV[6]) > 0 then redis.call('HSET', KEYS[2], ARGV[2], ARGV[5]) end
if score ~= 'inf' then redis.call('ZADD', KEYS[1], now + tonumber(ARGV[3]), ARGV[2]) end
return 1`,
  },
  /**
   * A start made a run: the slot is the run's from now on, and what its server and tool were held or counted for by starts
   * that were refused is over. KEYS slots, attempt, batch, server state, streak of the tool's refusals. ARGV scrape → 1 when
   * the scrape was cancelled meanwhile, with its batch or alone
   */
  trawlHandOn: {
    keys: 5,
    lua: `
redis.call('ZADD', KEYS[1], 'inf', ARGV[1])
redis.call('HDEL', KEYS[4], 'coolFails')
redis.call('DEL', KEYS[5])
local cur = redis.call('HMGET', KEYS[2], 'cx', 'bt', 'at')
if cur[1] then return 1 end
local batch = redis.call('HGET', KEYS[3], 'cx')
if batch and tonumber(cur[2] or cur[3] or '0') <= tonumber(batch) then return 1 end
return 0`,
  },
  /** KEYS slots. ARGV lifetime, scrape …: renews slots whose start is under way; a run's slot needs no renewal. */
  trawlRenew: {
    keys: 1,
    lua: `${now}
for i = 2, #ARGV do
  if redis.call('ZSCORE', KEYS[1], ARGV[i]) ~= 'inf' then redis.call('ZADD', KEYS[1], now + tonumber(ARGV[1]), ARGV[i]) end
end
return 1`,
  },
  /**
   * KEYS slots, memory. ARGV wake channel, server, '1' to leave alone what belongs to a run, member …: releases; releasing
   * twice is nothing.
   */
  trawlRelease: {
    keys: 2,
    lua: `
local n = 0
for i = 4, #ARGV do
  if ARGV[3] ~= '1' or redis.call('ZSCORE', KEYS[1], ARGV[i]) ~= 'inf' then
    n = n + redis.call('ZREM', KEYS[1], ARGV[i])
    redis.call('HDEL', KEYS[2], ARGV[i])
  end
end
if n > 0 then redis.call('PUBLISH', ARGV[1], ARGV[2]) end
return n`,
  },
  /** Remembers a start. KEYS recent starts. ARGV when, scrape, how long it is remembered */
  trawlRecent: {
    keys: 1,
    lua: `
redis.call('ZADD', KEYS[1], ARGV[1], ARGV[2])
redis.call('ZREMRANGEBYSCORE', KEYS[1], 0, ARGV[1] - ARGV[3])
redis.call('PEXPIRE', KEYS[1], ARGV[3])
return 1`,
  },
} as const;
