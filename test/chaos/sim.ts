import { startSim } from '../sim/index.js';

/** The simulator in a process of its own: its ledger survives whatever happens to the rest. */
const sim = await startSim({
  seed: Number(process.argv[2] ?? 1),
  ledgerLimit: 2_000_000,
  // Above what workers accept of an answer.
  conditions: { mix: 'fixed', hugeBytes: 3_000_000 },
});
process.once('disconnect', () => process.exit(0));
process.send?.(sim.port);
