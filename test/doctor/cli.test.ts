import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Section } from '../../src/doctor/run.js';
import { type Sim, startSim } from '../sim/index.js';

let folder: string;
let sim: Sim;

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'trawl-doctor-'));
  sim = await startSim({ port: 0 });
});

afterEach(async () => {
  await sim.close();
  rmSync(folder, { recursive: true });
});

async function doctor(...args: string[]): Promise<{ code: number; stdout: string; stderr: string }> {
  const module = (path: string) => JSON.stringify(join(import.meta.dirname, path));
  const script = `import { Command } from ${JSON.stringify(import.meta.resolve('commander'))};
    import { registerDoctor } from ${module('../../src/cli/doctor.ts')};
    const program = new Command();
    registerDoctor(program);
    await program.parseAsync(['doctor', ...${JSON.stringify(args)}], { from: 'user' });`;
  const file = join(folder, 'doctor.mts');
  writeFileSync(file, script);
  const child = spawn(process.execPath, ['--import', import.meta.resolve('tsx'), file], {
    cwd: folder,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const output = { stdout: '', stderr: '' };
  child.stdout.on('data', (chunk: Buffer) => {
    output.stdout += chunk.toString();
  });
  child.stderr.on('data', (chunk: Buffer) => {
    output.stderr += chunk.toString();
  });
  const [code] = (await once(child, 'close')) as [number];
  return { code, ...output };
}

function config(tools: string): void {
  const lines = [
    'servers:',
    '  apify:',
    `    url: ${sim.url}`,
    '    token: canary-token',
    `    tools: [${tools}]`,
  ];
  writeFileSync(join(folder, 'trawl.yaml'), lines.join('\n'));
}

describe('trawl doctor', () => {
  it('finds everything in order with the simulator and a private Redis, and ends by itself', async () => {
    config('compass/crawler-google-places');
    const { code, stdout, stderr } = await doctor();
    expect(stderr).toBe('');
    expect(code, stdout).toBe(0);
    expect(stdout).toMatch(/^ {2}ok {4}tools +1 of 1 found: compass\/crawler-google-places$/m);
    expect(stdout).toMatch(/Everything is in order\.\n$/);
    expect(stdout).toMatch(/^[\n\x20-\x7e]*$/);
    expect(existsSync(join(folder, '.trawl/redis/redis.sock'))).toBe(false);
    expect(sim.stats().starts).toBe(0);
  });

  it('names a tool that is not there, as one document for programs', async () => {
    config('compass/crawler-google-places, acme/misspelt');
    const { code, stdout } = await doctor('--json');
    const report = JSON.parse(stdout) as { ok: boolean; exitCode: number; sections: Section[] };
    expect(report).toMatchObject({ ok: false, exitCode: 2 });
    expect(code).toBe(2);
    const failed = report.sections.flatMap(({ title, checks }) =>
      checks.filter((check) => check.ok === 'fail').map((check) => `${title}: ${check.message}`),
    );
    expect(failed).toEqual([expect.stringMatching(/^Server apify: .*acme\/misspelt/)]);
    expect(stdout).not.toContain('canary-token');
  });

  it('shows how to begin when there is no configuration', async () => {
    const { code, stdout } = await doctor();
    expect(code).toBe(2);
    expect(stdout).toContain('servers:');
  });
});
