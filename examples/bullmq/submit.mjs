// Submits a file of jobs with plain BullMQ and prints each outcome as a line of JSON. No code of Trawl's.
//
//   npm install bullmq ioredis
//   node submit.mjs jobs.ndjson            (REDIS_URL, default redis://127.0.0.1:6379; PREFIX, default {trawl})
//
// Exit codes: 0 all well, 1 a scrape failed or was rejected.

import { readFileSync } from 'node:fs';
import { Queue, QueueEvents } from 'bullmq';
import { Redis } from 'ioredis';

const [file] = process.argv.slice(2);
if (file === undefined) {
  console.error('usage: node submit.mjs FILE');
  process.exit(2);
}
const prefix = process.env.PREFIX || '{trawl}';
const connection = new Redis(process.env.REDIS_URL || 'redis://127.0.0.1:6379', {
  maxRetriesPerRequest: null,
});

const jobs = readFileSync(file, 'utf8')
  .split('\n')
  .filter((line) => line.trim() !== '')
  .map((line) => JSON.parse(line));

const scrapes = new Queue('scrape', { connection, prefix });
// A connection of its own: it blocks.
const blocking = connection.duplicate();
const events = new QueueEvents('scrape', { connection: blocking, prefix });
// One listener a job that is waited for.
events.setMaxListeners(0);
scrapes.setMaxListeners(0);
await events.waitUntilReady();

// The job id is <batch>.<id>: the same pair again starts nothing and gets the outcome that is there.
const added = await scrapes.addBulk(
  jobs.map((data) => ({
    name: 'scrape',
    data,
    opts: data.id === undefined ? {} : { jobId: `${data.batch ?? 'default'}.${data.id}` },
  })),
);
console.error(`submitted ${added.length} jobs`);

await Promise.all(
  added.map(async (job) => {
    try {
      console.log(JSON.stringify(await job.waitUntilFinished(events)));
    } catch (error) {
      // A failure rejects with its message; the whole outcome document is the job's progress.
      process.exitCode = 1;
      const { progress } = (await scrapes.getJob(job.id)) ?? {};
      console.log(
        JSON.stringify(typeof progress === 'object' ? progress : { id: job.id, message: error.message }),
      );
    }
  }),
);

await events.close();
await scrapes.close();
blocking.disconnect();
connection.disconnect();
