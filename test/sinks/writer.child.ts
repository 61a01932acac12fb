/** A writer in a process of its own, to be killed or frozen: `write DIR GZIP` or `retire DIR GZIP` (see file-crash.test.ts). */
import { createFileSink } from '../../src/sinks/file.js';
import { outcome, page, target } from './writing.js';

const [mode, dir = '', gzip] = process.argv.slice(2);
const sink = createFileSink({ dir, gzip: gzip === 'true' });

async function writeScrape(id: string): Promise<void> {
  const of = target(id);
  await sink.begin(of);
  for (let index = 0; index < 5; index++) await sink.writePage(of, page(index));
  await sink.writeRecord(of, {
    key: 'OUTPUT',
    contentType: 'application/json',
    body: Buffer.from('{"a":1}'),
  });
  await sink.settle(of, outcome(of));
}

process.stdout.write('ready\n');
if (mode === 'write') {
  const ids = Array.from({ length: 12 }, (_, at) => `s-${at}`);
  await Promise.all(
    [0, 1, 2, 3].map(async (lane) => {
      for (const id of ids.filter((_, at) => at % 4 === lane)) await writeScrape(id);
    }),
  );
} else {
  await sink.begin(target('many', 2)).catch((error: unknown) => {
    // Frozen for long, it may find attempt 3 begun: that is the answer it has to get.
    if (!(error instanceof Error && 'code' in error && error.code === 'attempt_superseded')) throw error;
  });
}
process.stdout.write('done\n');
