/** A process that takes from the intake and then hangs with what it has in hand, for tests to kill. */
import { Redis } from 'ioredis';
import { IntakeList } from '../../src/queue/intake-list.js';
import { IntakeStream } from '../../src/queue/intake-stream.js';
import { Keys } from '../../src/queue/names.js';

const [url, prefix, which] = process.argv.slice(2) as [string, string, string];
const redis = new Redis(url);
const keys = new Keys(prefix);
const source =
  which === 'stream'
    ? new IntakeStream(redis, keys, 'doomed', 60_000, Date.now)
    : new IntakeList(redis, keys, 'doomed', 60_000);
// The first turn on a stream without a group makes the group.
let taken: unknown[] = [];
while (taken.length === 0) taken = await source.take({ entries: 10, bytes: 1e6, longest: 1e5 });
process.stdout.write(`${taken.length}\n`);
setInterval(() => {}, 60_000);
