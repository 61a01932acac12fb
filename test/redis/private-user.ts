/**
 * A process that uses a folder's private Redis, driven by lines on stdin: `join`, `leave`, `storm N`. It answers each with one
 * line of JSON; what it logs follows on lines with `log`.
 */
import { createInterface } from 'node:readline';
import { Redis } from 'ioredis';
import { acquirePrivateRedis, type PrivateRedis } from '../../src/redis/private-server.js';

const [dir = '', tmp = ''] = process.argv.slice(2);
const say = (message: object) => process.stdout.write(`${JSON.stringify(message)}\n`);
const report = (level: string) => (_fields: object, message: string) => say({ log: level, message });
const log = { debug() {}, info: report('info'), warn: report('warn'), error: report('error') };
const acquire = () => acquirePrivateRedis({ dir, path: process.env.PATH, log, tmp });

let redis: PrivateRedis | undefined;

/** Joins, counts one up, leaves, as fast as it goes. */
async function storm(rounds: number): Promise<void> {
  for (let round = 0; round < rounds; round += 1) {
    const mine = await acquire();
    const client = new Redis({ path: mine.url });
    client.on('error', () => {});
    await client.incr('count');
    await client.quit();
    await mine.release();
  }
}

for await (const line of createInterface({ input: process.stdin })) {
  const [verb, argument] = line.split(' ');
  try {
    if (verb === 'join') {
      redis = await acquire();
      say({ done: 'join', url: redis.url });
    } else if (verb === 'leave') {
      await redis?.release();
      say({ done: 'leave' });
    } else {
      await storm(Number(argument));
      say({ done: 'storm' });
    }
  } catch (error) {
    say({ failed: String(error) });
  }
}
