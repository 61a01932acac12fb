import type { Redis } from 'ioredis';

/**
 * The Lua scripts. Each reads the time from Redis, so that the clocks of processes do not matter, and each leaves
 * nothing half done. An attempt's hash is only written under the lock of the job that works on it: a worker that was
 * frozen past its lock finds the lock gone and changes nothing (BullMQ's own `updateData` checks no lock).
 */
const now = `local t = redis.call('TIME'); local now = t[1] * 1000 + math.floor(t[2] / 1000)`;

const scripts = {
  /**
   * First sight of a scrape. While it only waits, its attempt is one field (its number) of a bucket that many share: a
   * hash of its own would cost 220 bytes a waiting scrape, a field on the job's hash 120. Only a job whose id another
   * program chose gets one at once. KEYS attempt, batch, bucket. ARGV bullId ('' when it equals the scrape), submittedAt,
   * digest, batchTtl, attempt number, scrape. → {'', cancel of the scrape, cancel of its batch} accepted |
   * {digest} of the one that is known already ('' when it only waits)
   */
  trawlAccept: {
    keys: 3,
    lua: `
local cur = redis.call('HMGET', KEYS[1], 'ph', 'dg', 'cx')
if cur[1] then return {cur[2] or ''} end
if redis.call('HEXISTS', KEYS[3], ARGV[6]) == 1 then return {''} end
if ARGV[1] == '' then
  redis.call('HSET', KEYS[3], ARGV[6], ARGV[5])
else
  redis.call('PERSIST', KEYS[1])
  redis.call('HSET', KEYS[1], 'n', ARGV[5], 'ph', '0', 'at', ARGV[2], 'dg', ARGV[3], 'job', ARGV[1])
end
redis.call('HINCRBY', KEYS[2], 'submitted', 1)
redis.call('HSETNX', KEYS[2], 'since', ARGV[2])
redis.call('PEXPIRE', KEYS[2], ARGV[4])
return {'', cur[3], redis.call('HGET', KEYS[2], 'cx')}`,
  },
  /**
   * One look at a scrape. KEYS attempt, batch, bucket, public job. ARGV scrape → {the hash, cancel of the batch, number of
   * the attempt that only waits, when the public job was added}
   */
  trawlLoad: {
    keys: 4,
    lua: `
local hash = redis.call('HGETALL', KEYS[1])
local waiting, added = false, false
if redis.call('HEXISTS', KEYS[1], 'ph') == 0 then
  waiting = redis.call('HGET', KEYS[3], ARGV[1])
  if waiting then added = redis.call('HGET', KEYS[4], 'timestamp') end
end
return {hash, redis.call('HGET', KEYS[2], 'cx'), waiting, added}`,
  },
  /**
   * The one way an attempt's state changes, and its event with it, so that each is told of once: a call that is sent again
   * after a lost reply finds everything as it would be, and tells nothing. KEYS attempt, lock,
   * bucket, public job, events. ARGV scrape, token, attempt number, lowest and highest phase it may be in, phase to move to
   * (-1: stay), the event's type ('' none), its bound, id, batch, data, field value … ('' deletes). → 1 done |
   * 0 the lock is another's | -1 unknown attempt | -2 the phase is elsewhere
   */
  trawlAdvance: {
    keys: 5,
    lua: `
if redis.call('GET', KEYS[2]) ~= ARGV[2] then return 0 end
local cur = redis.call('HMGET', KEYS[1], 'n', 'ph')
if not cur[2] then
  local waiting = redis.call('HGET', KEYS[3], ARGV[1])
  if waiting ~= ARGV[3] then return -1 end
  redis.call('HDEL', KEYS[3], ARGV[1])
  redis.call('PERSIST', KEYS[1])
  redis.call('HSET', KEYS[1], 'n', waiting, 'ph', '0', 'at', redis.call('HGET', KEYS[4], 'timestamp') or '0')
  cur = {waiting, '0'}
end
if cur[1] ~= ARGV[3] then return -1 end
local phase = tonumber(cur[2])
if phase < tonumber(ARGV[4]) or phase > tonumber(ARGV[5]) then return -2 end
local to = tonumber(ARGV[6])
if to >= 0 then
  if to < phase then return -2 end
  redis.call('HSET', KEYS[1], 'ph', to)
end
local told = ARGV[7] == ''
for i = 12, #ARGV, 2 do
  if not told and (redis.call('HGET', KEYS[1], ARGV[i]) or '') ~= ARGV[i + 1] then
    told = true
    redis.call('XADD', KEYS[5], 'MAXLEN', '~', ARGV[8], '*', 'type', ARGV[7], 'id', ARGV[9], 'batch', ARGV[10], 'data', ARGV[11])
  end
  if ARGV[i + 1] == '' then redis.call('HDEL', KEYS[1], ARGV[i]) else redis.call('HSET', KEYS[1], ARGV[i], ARGV[i + 1]) end
end
return 1`,
  },
  /**
   * Saves the run id of a start, before anything else happens, and tells of it once. No lock: the call was paid for whoever
   * holds it now; the intent says that it was this very call. The claim lasts as long as the attempt has the run, and a
   * while longer. KEYS attempt, claim, events. ARGV attempt number, intentAt, runId, scrape, the event's bound, id, batch,
   * data, field value … → 1 saved | 2 the same run was saved before | 3 the attempt has another run, or went on without
   * one: this run is nobody's | 4 another scrape has claimed it
   */
  trawlSaveRun: {
    keys: 3,
    lua: `
local cur = redis.call('HMGET', KEYS[1], 'n', 'ph', 'it', 'rid')
if cur[1] ~= ARGV[1] then return 3 end
if cur[4] then
  if cur[4] == ARGV[3] then return 2 end
  return 3
end
if cur[2] ~= '1' then return 3 end
if ARGV[2] ~= '' and cur[3] ~= ARGV[2] then return 3 end
local owner = redis.call('GET', KEYS[2])
if owner and owner ~= ARGV[4] then return 4 end
redis.call('SET', KEYS[2], ARGV[4])
redis.call('HSET', KEYS[1], 'ph', '2', 'rid', ARGV[3], 'ck', KEYS[2])
redis.call('HDEL', KEYS[1], 'it', 'as', 'ak')
redis.call('XADD', KEYS[3], 'MAXLEN', '~', ARGV[5], '*', 'type', 'scrape.started', 'id', ARGV[6], 'batch', ARGV[7], 'data', ARGV[8])
for i = 9, #ARGV, 2 do
  if ARGV[i + 1] == '' then redis.call('HDEL', KEYS[1], ARGV[i]) else redis.call('HSET', KEYS[1], ARGV[i], ARGV[i + 1]) end
end
return 1`,
  },
  /**
   * Begins the next attempt. KEYS attempt, lock of the public job, batch. ARGV token, number of the attempt that ended,
   * usage so far ('' unknown), outcome counted in the batch ('' when it was not published), ms that its run stays claimed.
   * → 1 | 0 lock | -1 elsewhere
   * An operator's retry is remembered by its time: a cancel of the whole batch from before does not cover it. A cancel that
   * came while this attempt ended covers the next one.
   */
  trawlNextAttempt: {
    keys: 3,
    lua: `${now}
if redis.call('GET', KEYS[2]) ~= ARGV[1] then return 0 end
local cur = redis.call('HMGET', KEYS[1], 'n', 'ph', 'at', 'dg', 'job', 'cx', 'ck')
if cur[1] ~= ARGV[2] then return -1 end
local phase = tonumber(cur[2])
if phase < 5 then return -1 end
if cur[7] then redis.call('PEXPIRE', cur[7], ARGV[5]) end
redis.call('DEL', KEYS[1])
redis.call('HSET', KEYS[1], 'n', tonumber(cur[1]) + 1, 'ph', '0', 'at', cur[3], 'dg', cur[4] or '')
if cur[5] then redis.call('HSET', KEYS[1], 'job', cur[5]) end
if ARGV[3] ~= '' then redis.call('HSET', KEYS[1], 'ub', ARGV[3]) end
if phase == 5 and cur[6] then redis.call('HSET', KEYS[1], 'cx', cur[6]) end
if phase == 6 then redis.call('HSET', KEYS[1], 'bt', now) end
if phase == 6 and ARGV[4] ~= '' then
  redis.call('HINCRBY', KEYS[3], 'settled', -1)
  redis.call('HINCRBY', KEYS[3], 'o:' .. ARGV[4], -1)
end
return 1`,
  },
  /**
   * Publishes an outcome once: counts it, tells the event stream, puts the document on the public job, gives the hash a
   * lifetime; the looks at the run stay for a while under a key of their own. KEYS attempt, batch, events, bucket, public
   * job, looks. ARGV attempt number, outcome, finishes of the public job so far, document, id, batch, lifetime, event bound,
   * items, usage ('' unknown), batch lifetime, digest, scrape, ms that its run stays claimed, lifetime of the looks, which
   * call this is: sent again after a lost reply it hears that it was the first.
   * → 1 first | 0 done before | -1 unknown attempt
   */
  trawlDone: {
    keys: 6,
    lua: `
local cur = redis.call('HMGET', KEYS[1], 'n', 'ph', 'at', 'dg', 'job', 'ck', 'lk', 'by')
local added = redis.call('HGET', KEYS[5], 'timestamp')
if not cur[2] then
  local waiting = redis.call('HGET', KEYS[4], ARGV[13])
  if not waiting then return -1 end
  cur = {waiting, '0', added or '0', false, false, false, false, false}
end
if cur[1] ~= ARGV[1] then return -1 end
if cur[2] == '6' then
  if cur[8] == ARGV[16] then return 1 end
  return 0
end
if added then redis.call('HSET', KEYS[5], 'progress', ARGV[4]) end
if cur[6] then redis.call('PEXPIRE', cur[6], ARGV[14]) end
redis.call('DEL', KEYS[1])
if cur[7] then redis.call('SET', KEYS[6], cur[7], 'PX', ARGV[15]) else redis.call('DEL', KEYS[6]) end
redis.call('HDEL', KEYS[4], ARGV[13])
redis.call('HSET', KEYS[1], 'n', cur[1], 'ph', '6', 'at', cur[3], 'dg', ARGV[12], 'oc', ARGV[2], 'am', ARGV[3], 'by', ARGV[16])
if cur[5] then redis.call('HSET', KEYS[1], 'job', cur[5]) end
if ARGV[10] ~= '' then redis.call('HSET', KEYS[1], 'ub', ARGV[10]) end
redis.call('PEXPIRE', KEYS[1], ARGV[7])
local settled = redis.call('HINCRBY', KEYS[2], 'settled', 1)
redis.call('HINCRBY', KEYS[2], 'o:' .. ARGV[2], 1)
redis.call('HINCRBY', KEYS[2], 'items', ARGV[9])
if ARGV[10] ~= '' then redis.call('HINCRBYFLOAT', KEYS[2], 'usage', ARGV[10]) end
redis.call('PEXPIRE', KEYS[2], ARGV[11])
redis.call('XADD', KEYS[3], 'MAXLEN', '~', ARGV[8], '*', 'type', 'scrape.settled', 'id', ARGV[5], 'batch', ARGV[6], 'data', ARGV[4])
if settled == tonumber(redis.call('HGET', KEYS[2], 'submitted')) then
  local totals = {}
  local all = redis.call('HGETALL', KEYS[2])
  for i = 1, #all, 2 do totals[all[i]] = all[i + 1] end
  redis.call('XADD', KEYS[3], 'MAXLEN', '~', ARGV[8], '*', 'type', 'batch.settled', 'id', '', 'batch', ARGV[6], 'data', cjson.encode(totals))
end
return 1`,
  },
  /** Ends the turn of a suspect, unless another has it by now. KEYS turn, turns. ARGV the turn, who had it. → 1 | 0 */
  trawlEndTurn: {
    keys: 2,
    lua: `
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
redis.call('DEL', KEYS[1])
redis.call('HDEL', KEYS[2], ARGV[2])
return 1`,
  },
  /** KEYS a job. ARGV field, value …: written unless the job is gone. → 1 | 0 gone, and not brought back */
  trawlMend: {
    keys: 1,
    lua: `
if redis.call('HEXISTS', KEYS[1], 'timestamp') == 0 then return 0 end
redis.call('HSET', KEYS[1], unpack(ARGV))
return 1`,
  },
  /**
   * Puts an outcome document on a public job, as BullMQ's own `updateProgress` does, which checks no lock. KEYS job, lock,
   * BullMQ's events. ARGV token, document, job id, the events' bound. → 1 | 0 the lock is another's, or gone with the job
   */
  trawlTell: {
    keys: 3,
    lua: `
if redis.call('GET', KEYS[2]) ~= ARGV[1] then return 0 end
if redis.call('HEXISTS', KEYS[1], 'timestamp') == 0 then return 0 end
redis.call('HSET', KEYS[1], 'progress', ARGV[2])
redis.call('XADD', KEYS[3], 'MAXLEN', '~', ARGV[4], '*', 'event', 'progress', 'jobId', ARGV[3], 'data', ARGV[2])
return 1`,
  },
  /**
   * Marks a scrape as cancelled. KEYS attempt, bucket, public job under the scrape's key, under its id alone. ARGV lifetime
   * of a mark that nobody may ever take up, scrape, lifetime of a mark on a job that no worker has looked at. → phase |
   * 'new' such a job | '' unknown
   */
  trawlCancel: {
    keys: 4,
    lua: `${now}
local phase = redis.call('HGET', KEYS[1], 'ph')
if phase == '6' then return phase end
redis.call('HSETNX', KEYS[1], 'cx', now)
if phase then return phase end
if redis.call('HEXISTS', KEYS[2], ARGV[2]) == 1 then return '0' end
if redis.call('EXISTS', KEYS[3], KEYS[4]) > 0 then
  redis.call('PEXPIRE', KEYS[1], ARGV[3])
  return 'new'
end
redis.call('PEXPIRE', KEYS[1], ARGV[1])
return ''`,
  },
  /**
   * Reserves up to `want` run slots for 5 s, before jobs are taken. KEYS slots, server state. ARGV limit, want, lifetime,
   * member prefix, probe interval. → {granted, reason ('' free, 'full' or a hold), ms until it is worth asking again}
   */
  trawlReserve: {
    keys: 2,
    lua: `${now}
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', '(' .. now)
local s = redis.call('HMGET', KEYS[2], 'paused', 'held', 'probeAt', 'coolUntil', 'penalty', 'penaltyUntil', 'coolReason')
if s[1] then return {0, 'paused', 5000} end
local limit = tonumber(ARGV[1])
local want = tonumber(ARGV[2])
if s[6] and tonumber(s[6]) > now then limit = math.max(1, limit - tonumber(s[5])) end
if s[4] and tonumber(s[4]) > now then return {0, s[7] or 'capacity', tonumber(s[4]) - now} end
local probeAt = tonumber(s[3] or '0')
if s[2] and probeAt > now then return {0, s[2], probeAt - now} end
local free = limit - redis.call('ZCARD', KEYS[1])
if free <= 0 then return {0, 'full', 1000} end
if s[2] then
  redis.call('HSET', KEYS[2], 'probeAt', now + tonumber(ARGV[5]))
  want = 1
end
local n = math.min(free, want)
for i = 1, n do redis.call('ZADD', KEYS[1], now + tonumber(ARGV[3]), ARGV[4] .. i) end
return {n, s[2] or '', 0}`,
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
  /** Remembers a start. KEYS recent starts. ARGV when, scrape, how long it is remembered */
  trawlRecent: {
    keys: 1,
    lua: `
redis.call('ZADD', KEYS[1], ARGV[1], ARGV[2])
redis.call('ZREMRANGEBYSCORE', KEYS[1], 0, ARGV[1] - ARGV[3])
redis.call('PEXPIRE', KEYS[1], ARGV[3])
return 1`,
  },
  /**
   * Counts a verdict on a tool in its brake's window, unless its run began before the hold that is to be tried. KEYS window,
   * tools. ARGV tool, '1' bad or '0' good, length of the window, lifetime, when the run began → {the tool's hold ('' none),
   * the window's entries, newest first} | {hold} when the verdict does not count
   */
  trawlBrake: {
    keys: 2,
    lua: `
local held = redis.call('HGET', KEYS[2], ARGV[1]) or ''
if held ~= '' then
  local hold = cjson.decode(held)
  if hold.proof == 'runs' and tonumber(ARGV[5]) < hold.since then return {held} end
end
redis.call('LPUSH', KEYS[1], ARGV[2])
redis.call('LTRIM', KEYS[1], 0, ARGV[3] - 1)
redis.call('PEXPIRE', KEYS[1], ARGV[4])
return {held, table.concat(redis.call('LRANGE', KEYS[1], 0, -1))}`,
  },
  /**
   * What stands against a tool's next start. KEYS tools, refusals waiting. ARGV tool, field of its pause, scrape → {hold,
   * paused since, the refusal this scrape waits with}
   */
  trawlAgainst: {
    keys: 2,
    lua: `
local block = redis.call('HMGET', KEYS[1], ARGV[1], ARGV[2])
return {block[1], block[2], redis.call('HGET', KEYS[2], ARGV[3])}`,
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
  /**
   * "Not now": the server cools down, 5 s doubling to 5 min, and its effective run limit sinks by one for 5 minutes.
   * KEYS server state. ARGV reason, retry-after ms (0: none), whether the limit sinks. → {ms of
   * the cool-down, 1 when it begins now}
   */
  trawlCoolDown: {
    keys: 1,
    lua: `${now}
local s = redis.call('HMGET', KEYS[1], 'coolUntil', 'coolFails', 'penalty', 'penaltyUntil')
local fails = tonumber(s[2] or '0')
if s[1] and tonumber(s[1]) > now then return {tonumber(s[1]) - now, 0} end
if s[1] and now - tonumber(s[1]) > 600000 then fails = 0 end
local wait = math.min(300000, 5000 * 2 ^ math.min(fails, 10))
wait = math.max(wait, tonumber(ARGV[2]))
redis.call('HSET', KEYS[1], 'coolUntil', now + wait, 'coolFails', fails + 1, 'coolReason', ARGV[1])
if ARGV[3] == '1' then
  local penalty = 0
  if s[4] and tonumber(s[4]) > now then penalty = tonumber(s[3]) end
  redis.call('HSET', KEYS[1], 'penalty', penalty + 1, 'penaltyUntil', now + 300000)
end
return {wait, 1}`,
  },
} as const;

type ScriptName = keyof typeof scripts;
type Scripted = Record<ScriptName, (...args: (string | number)[]) => Promise<unknown>>;

/** Adds the scripts to a connection as commands. Calling it twice on one connection does no harm. */
export function withScripts(redis: Redis): Redis & Scripted {
  for (const [name, { keys, lua }] of Object.entries(scripts)) {
    if (!(name in redis)) redis.defineCommand(name, { numberOfKeys: keys, lua });
  }
  return redis as Redis & Scripted;
}

export type ScriptedRedis = ReturnType<typeof withScripts>;
