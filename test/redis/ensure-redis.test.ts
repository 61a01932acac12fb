import { execFile } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { installHint } from '../../src/redis/find-binary.js';

const root = join(import.meta.dirname, '../..');
const script = join(root, 'scripts/ensure-redis.mjs');
let bin: string;

beforeEach(() => {
  bin = mkdtempSync(join(tmpdir(), 'trawl-bin-'));
});

afterEach(() => rmSync(bin, { recursive: true }));

function put(name: string, text: string, mode = 0o755): void {
  writeFileSync(join(bin, name), text, { mode });
}

function run(args: string[] = [], file = script): Promise<{ code: number; stdout: string; stderr: string }> {
  return new Promise((resolve) => {
    execFile(process.execPath, [file, ...args], { env: { PATH: bin } }, (error, stdout, stderr) => {
      resolve({ code: error === null ? 0 : Number(error.code), stdout, stderr });
    });
  });
}

describe('ensure-redis', () => {
  it.each(['redis-server', 'valkey-server'])('is content with %s, without a word', async (name) => {
    put(name, '');
    expect(await run()).toEqual({ code: 0, stdout: '', stderr: '' });
  });

  it('needs nothing installed: it runs before npm ci', () => {
    const imports = readFileSync(script, 'utf8').match(/^import .*$/gm) ?? [];
    expect(imports.length).toBeGreaterThan(0);
    expect(imports.filter((line) => !/ from 'node:\w+';$/.test(line))).toEqual([]);
  });

  it('prints the line to type when it cannot install one, as the product does', async () => {
    put('redis-server', '', 0o644);
    const { code, stdout, stderr } = await run();
    expect(code).toBe(1);
    expect(stdout).toBe('');
    expect(stderr).toBe(`No redis-server or valkey-server on the PATH.\n${installHint()}\n`);
  });

  it('installs one with apt-get where it may, and says what to type where not', async () => {
    const log = join(bin, 'log');
    put(
      'apt-get',
      `#!/bin/sh\necho "$DEBIAN_FRONTEND $*" >> ${log}\necho working\ncase "$*" in *install*) : > ${bin}/redis-server; /bin/chmod 755 ${bin}/redis-server;; esac\n`,
    );
    const { code, stdout, stderr } = await run();
    expect(stdout).toBe('');
    if (process.getuid?.() === 0 && existsSync('/etc/debian_version')) {
      expect(code).toBe(0);
      expect(stderr).toContain('working');
      expect(readFileSync(log, 'utf8').trimEnd().split('\n')).toEqual([
        'noninteractive -o DPkg::Lock::Timeout=120 update',
        'noninteractive -o DPkg::Lock::Timeout=120 install -y --no-install-recommends redis-server',
      ]);
    } else {
      expect(code).toBe(1);
      expect(existsSync(log)).toBe(false);
    }
  });

  it('says so when apt-get fails', async () => {
    put('apt-get', '#!/bin/sh\nexit 100\n');
    const { code, stderr } = await run();
    expect(code).toBe(1);
    expect(stderr).toContain(installHint());
  });

  it('takes no arguments', async () => {
    expect(await run(['--help-me'])).toMatchObject({ code: 2, stderr: expect.stringMatching(/^Usage/) });
  });

  it('tells a Node that is too old in one sentence', async () => {
    const source = readFileSync(script, 'utf8');
    const { engines } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
      engines: { node: string };
    };
    const [, least] = /leastNode = \[(.*)\]/.exec(source) ?? [];
    expect(`>=${least?.replace(', ', '.')}`).toBe(engines.node);
    const older = join(bin, 'older.mjs');
    writeFileSync(older, source.replace('process.versions.node', "'18.2.0'"));
    const { code, stderr } = await run([], older);
    expect(code).toBe(2);
    expect(stderr).toMatch(/^Trawl needs Node 20\.19 or newer, and this is 18\.2\.0: .*\n$/);
  });
});
