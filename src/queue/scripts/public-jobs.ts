/** How an outcome is published, and what is written on a public job. */
export const publicJobScripts = {
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
  /** KEYS a job. ARGV field, value …: written unless the job is gone. → 1 | 0 gone, and not brought back */
  trawlMend: {
    keys: 1,
    lua: `
if redis.call('HEXISTS', KEYS[1], 'timestamp') == 0 then return 0 end
redis.call('HSET', KEYS[1], unpack(ARGV))
return 1`,
  },
} as const;
