import { Redis } from 'ioredis';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { LogLevels, LogOverrides } from '../../src/log-levels.js';
import { createLogger } from '../../src/logger.js';
import { LogLevelOverrides } from '../../src/queue/log-overrides.js';
import { Keys } from '../../src/queue/names.js';
import { LogLevelWatch } from '../../workers/log-levels.js';
import { RedisProcess } from '../redis/redis-process.js';

const configured: LogLevels = { level: 'info', modules: { redis: 'error' } };

function watching(read: () => Promise<LogOverrides>) {
  const lines: Record<string, unknown>[] = [];
  const destination = { write: (line: string) => lines.push(JSON.parse(line)) };
  const log = createLogger({ ...configured, destination });
  const clock = { now: 0 };
  const watch = new LogLevelWatch({ read }, log, configured, 2_000, () => clock.now);
  const levels = () => [log.level, log.module('mcp').level, log.module('redis').level];
  return { watch, clock, lines, levels };
}

describe('a process', () => {
  it('takes what was asked for, the module before all, says so once, and goes back', async () => {
    let asked: LogOverrides = {};
    const { watch, lines, levels } = watching(async () => asked);
    await watch.look();
    expect(levels()).toEqual(['info', 'info', 'error']);
    asked = { mcp: 'debug' };
    await watch.look();
    await watch.look();
    expect(levels()).toEqual(['info', 'debug', 'error']);
    asked = { mcp: 'debug', all: 'trace' };
    await watch.look();
    expect(levels()).toEqual(['trace', 'debug', 'trace']);
    asked = {};
    await watch.look();
    expect(levels()).toEqual(['info', 'info', 'error']);
    expect(lines.map(({ event }) => event)).toEqual(['log.levels', 'log.levels', 'log.levels']);
    expect(lines[0]?.changed).toEqual(['mcp: info → debug']);
  });

  it('that hears nothing from Redis for a minute goes back by itself', async () => {
    let answer: Promise<LogOverrides> = Promise.resolve({ all: 'debug' });
    const { watch, clock, levels } = watching(() => answer);
    await watch.look();
    answer = Promise.reject(new Error('Redis is away'));
    answer.catch(() => {});
    clock.now = 59_000;
    await watch.look();
    expect(levels()[0]).toBe('debug');
    clock.now = 61_000;
    await watch.look();
    expect(levels()).toEqual(['info', 'info', 'error']);
  });

  it('goes back also while an answer of Redis is still awaited', async () => {
    let answer: Promise<LogOverrides> = Promise.resolve({ all: 'debug' });
    const { watch, clock, levels } = watching(() => answer);
    await watch.look();
    answer = new Promise(() => {});
    void watch.look();
    clock.now = 61_000;
    void watch.look();
    expect(levels()[0]).toBe('info');
  });
});

describe('in Redis', () => {
  let server: RedisProcess;
  let redis: Redis;
  let overrides: LogLevelOverrides;
  const keys = new Keys('{levels}');

  beforeAll(async () => {
    server = await RedisProcess.start('--hz', '100');
    redis = new Redis(server.url);
    overrides = new LogLevelOverrides(redis, keys);
  });
  afterAll(async () => {
    redis?.disconnect();
    await server?.stop();
  });
  beforeEach(() => redis.flushall());

  it('a level runs out by itself', async () => {
    await overrides.set('mcp', 'debug', 60_000);
    await overrides.set('all', 'warn', 5);
    await new Promise((resolve) => setTimeout(resolve, 20));
    expect(await overrides.read()).toEqual({ mcp: 'debug' });
    const [listed] = await overrides.list();
    expect(listed).toMatchObject({ target: 'mcp', level: 'debug' });
    expect(listed?.leftMs).toBeGreaterThan(50_000);
    expect(await redis.ttl(keys.logLevel('mcp'))).toBeGreaterThan(0);
  });

  it('reset names what it took back, of one or of all', async () => {
    await overrides.set('mcp', 'debug', 60_000);
    await overrides.set('sink', 'trace', 60_000);
    expect(await overrides.reset('http')).toEqual([]);
    expect(await overrides.reset('mcp')).toEqual(['mcp']);
    expect(await overrides.reset()).toEqual(['sink']);
    expect(await overrides.read()).toEqual({});
  });

  it('what is no level there is left out', async () => {
    await redis.set(keys.logLevel('mcp'), 'loud');
    expect(await overrides.read()).toEqual({});
  });
});
