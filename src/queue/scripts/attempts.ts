import { now } from './time.js';

/** An attempt from its first sight to its run, to the next attempt, and its cancel. */
export const attemptScripts = {
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
} as const;
