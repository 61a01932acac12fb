import { now } from './time.js';

/** What keeps starts back: cool-downs, holds, the brake, and the turn of a suspect. */
export const holdScripts = {
  /**
   * "Not now": the server cools down, 5 s doubling to 5 min, and its effective run limit sinks by one for 5 minutes. Many
   * calls, of several processes, meet one refusal at a time: of those sent before the last cool-down was over none doubles
   * it, however late its answer comes; only a longer wait that the server asks for counts. KEYS server state. ARGV reason,
   * retry-after ms (0: none), whether the limit sinks, ms since the call was sent. → {ms of the cool-down, 1 when it begins now}
   */
  trawlCoolDown: {
    keys: 1,
    lua: `${now}
local s = redis.call('HMGET', KEYS[1], 'coolUntil', 'coolFails', 'penalty', 'penaltyUntil')
local fails = tonumber(s[2] or '0')
local last = tonumber(s[1] or '0')
if now - tonumber(ARGV[4]) < last then
  local asked = now + tonumber(ARGV[2])
  if asked > last and ARGV[2] ~= '0' then
    last = asked
    redis.call('HSET', KEYS[1], 'coolUntil', last)
  end
  return {math.max(0, last - now), 0}
end
if now - last > 600000 then fails = 0 end
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
  /**
   * Counts a verdict on a tool in its brake's window, unless its run began before the hold that is to be tried. KEYS window,
   * tools. ARGV tool, '1' bad or '0' good, length of the window, lifetime, when the run began, which call this is (sent again
   * after a lost reply it counts no second time) → {the tool's hold ('' none), the window's verdicts, newest first} | {hold}
   * when the verdict does not count
   */
  trawlBrake: {
    keys: 2,
    lua: `
local held = redis.call('HGET', KEYS[2], ARGV[1]) or ''
if held ~= '' then
  local hold = cjson.decode(held)
  if hold.proof == 'runs' and tonumber(ARGV[5]) < hold.since then return {held} end
end
local entry = ARGV[2] .. ARGV[6]
if not redis.call('LPOS', KEYS[1], entry) then
  redis.call('LPUSH', KEYS[1], entry)
  redis.call('LTRIM', KEYS[1], 0, ARGV[3] - 1)
  redis.call('PEXPIRE', KEYS[1], ARGV[4])
end
local verdicts = {}
for i, each in ipairs(redis.call('LRANGE', KEYS[1], 0, -1)) do verdicts[i] = string.sub(each, 1, 1) end
return {held, table.concat(verdicts)}`,
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
} as const;
