import { parseArgs } from 'node:util';
import { guards, isGuard } from './guards.js';
import { prove } from './prove.js';
import { runChaos, usualOptions } from './run.js';

const usage = `usage: npm run chaos -- [--seed N] [--minutes M] [--scrapes N] [--without ${guards.join('|')}] [--keep]
       npm run chaos -- --prove [GUARD]

Kills, freezes and cuts everything around real workers for M minutes (default 2), heals it, and compares what the
simulated server did with Redis and the disk. Prints one line of JSON; a breach, or too few faults of a kind, exits with 1.
--without switches one guard off, which has to be found. --prove does so for each guard in turn, in short runs.
`;

const say = (line: string) => process.stderr.write(`chaos: ${line}\n`);

async function main(): Promise<number> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      seed: { type: 'string', default: '1' },
      minutes: { type: 'string', default: '2' },
      scrapes: { type: 'string' },
      without: { type: 'string' },
      prove: { type: 'boolean', default: false },
      keep: { type: 'boolean', default: false },
      help: { type: 'boolean', short: 'h', default: false },
    },
  });
  if (values.help) {
    process.stdout.write(usage);
    return 0;
  }
  const seed = Number(values.seed);
  const minutes = Number(values.minutes);
  const scrapes = Number(values.scrapes ?? Math.ceil(minutes * 180));
  const without = values.without ?? null;
  if (!Number.isSafeInteger(seed) || !(minutes > 0) || !(scrapes > 0)) throw new Error(usage);
  if (without !== null && !isGuard(without)) throw new Error(usage);
  if (values.prove) return prove(positionals.length > 0 ? positionals.filter(isGuard) : guards, seed, say);
  const options = { ...usualOptions(seed, minutes), scrapes, without, say, keep: values.keep };
  const { report, passed } = await runChaos(options);
  process.stdout.write(`${JSON.stringify(report)}\n`);
  return passed ? 0 : 1;
}

// Leaves no Redis behind; the other processes end with their parent.
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(130));

main().then(
  (code) => process.exit(code),
  (error: unknown) => {
    process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
    process.exit(2);
  },
);
