import { Command } from 'commander';
import { describe, expect, it } from 'vitest';
import { registerSim, startSimFromOptions } from '../../src/cli/sim.js';
import { RawClient } from './client.js';

describe('trawl sim', () => {
  it('is a command with a port, a speed and a seed', () => {
    const program = new Command();
    registerSim(program);
    const flags = program.commands[0]?.options.map(({ long }) => long);
    expect(flags).toEqual(['--port', '--host', '--speed', '--seed', '--mix']);
  });

  it('starts a good night ten times faster than life, whose run ids go on after a restart', async () => {
    const ids = [];
    for (let i = 0; i < 2; i++) {
      const sim = await startSimFromOptions({ port: '0' });
      const client = await RawClient.connect(sim.url, { tools: 'call-actor' });
      ids.push(await client.start('apify/rag-web-browser', { query: 'x' }));
      expect(sim.stats()).toMatchObject({ speed: 10, seed: 1, starts: 1 });
      await sim.close();
    }
    expect(ids[0]).toMatch(/^run\d{14}$/);
    expect(ids[1]).not.toBe(ids[0]);
  });

  it.each([
    [{ port: 'x' }, '--port'],
    [{ port: '70000' }, '--port'],
    [{ speed: '0' }, '--speed'],
    [{ seed: '1.5' }, '--seed'],
    [{ mix: 'quiet' }, '--mix'],
  ])('%j is a usage error that names the option', async (options, name) => {
    const failed = startSimFromOptions({ port: '0', ...options });
    await expect(failed).rejects.toMatchObject({ code: 'usage_invalid', exitCode: 2 });
    await expect(failed).rejects.toThrow(name);
  });

  it('says so when the port is taken', async () => {
    const sim = await startSimFromOptions({ port: '0' });
    await expect(startSimFromOptions({ port: String(sim.port) })).rejects.toMatchObject({
      code: 'usage_invalid',
    });
    await sim.close();
  });
});
