import { createHash } from 'node:crypto';
import type { Redis } from 'ioredis';
import { burstOf, type TokenSource } from './limiter.js';

/**
 * KEYS: when the tokens are paid off (ms of Redis's clock), the cool-down. ARGV: ms between tokens, burst, wanted.
 * Returns tokens granted and ms until another can be. A clock set back is met by the bound on how far ahead the debt
 * may lie.
 */
const takeScript = `
local quiet = redis.call('PTTL', KEYS[2])
if quiet > 0 then return {0, quiet} end
local time = redis.call('TIME')
local now = time[1] * 1000 + time[2] / 1000
local gap, wanted = tonumber(ARGV[1]), tonumber(ARGV[3])
local horizon = now + gap * tonumber(ARGV[2])
local due = tonumber(redis.call('GET', KEYS[1])) or 0
if due < now then due = now end
if due > horizon then due = horizon end
local granted = math.min(wanted, math.floor((horizon - due) / gap + 1e-6))
if granted > 0 then
  due = due + granted * gap
  redis.call('SET', KEYS[1], string.format('%.3f', due), 'PX', math.ceil(due - now) + 1000)
end
local wait = 0
if granted < wanted then wait = math.ceil(due + gap - horizon) end
return {granted, wait}
`;

/** KEYS: the cool-down. ARGV: ms. A shorter one never cuts a longer one. */
const coolDownScript = `
if redis.call('PTTL', KEYS[1]) < tonumber(ARGV[1]) then redis.call('SET', KEYS[1], '1', 'PX', ARGV[1]) end
return 1
`;

export interface RedisTokensOptions {
  readonly redis: Pick<Redis, 'eval' | 'evalsha'>;
  /** The hash tag of the queues, so that both keys share a cluster slot. */
  readonly prefix: string;
  readonly server: string;
  readonly requestsPerSecond: number;
}

/** Tokens that all processes on one Redis share: `<prefix>:rate:<server>` and `…:quiet`, both with an expiry. */
export function redisTokens(options: RedisTokensOptions): TokenSource {
  const { redis, requestsPerSecond } = options;
  const key = `${options.prefix}:rate:${options.server}`;
  const gap = String(1000 / requestsPerSecond);
  const burst = String(burstOf(requestsPerSecond));
  const take = scriptRunner(redis, takeScript);
  const coolDown = scriptRunner(redis, coolDownScript);
  return {
    async take(wanted) {
      const [granted, waitMs] = (await take([key, `${key}:quiet`], [gap, burst, String(wanted)])) as [
        number,
        number,
      ];
      return { granted, waitMs };
    },
    async coolDown(ms) {
      await coolDown([`${key}:quiet`], [String(ms)]);
    },
  };
}

/** Sends the script's hash; the text only when this Redis has not seen it (new, restarted, failed over). */
function scriptRunner(redis: Pick<Redis, 'eval' | 'evalsha'>, script: string) {
  const sha = createHash('sha1').update(script).digest('hex');
  return async (keys: string[], args: string[]): Promise<unknown> => {
    try {
      return await redis.evalsha(sha, keys.length, ...keys, ...args);
    } catch (error) {
      if (!(error instanceof Error) || !error.message.startsWith('NOSCRIPT')) throw error;
      return redis.eval(script, keys.length, ...keys, ...args);
    }
  };
}
