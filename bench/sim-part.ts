import { startSim } from '../test/sim/index.js';

process.once('message', async () => {
  const sim = await startSim({ ledger: 'off', conditions: { mix: 'fixed' } });
  process.send?.({ url: sim.url });
  process.on('message', () => process.send?.({ ...sim.stats(), cpu: process.cpuUsage() }));
});
