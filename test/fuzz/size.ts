/**
 * How much is generated: 20,000 replies and job documents with `npm run fuzz`, a tenth of it with the other tests. Always
 * from the same seed, so that a failure comes again; `TRAWL_FUZZ_SEED` tries others.
 */
const full = process.env.TRAWL_FUZZ === 'full';

export const seed = Number(process.env.TRAWL_FUZZ_SEED ?? 20_261_201);
export const replies = full ? 12_000 : 1_200;
export const failures = full ? 3_000 : 300;
export const jobs = full ? 5_000 : 500;
export const histories = full ? 4_000 : 1_000;
