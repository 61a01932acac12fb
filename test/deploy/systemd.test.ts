import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { loadConfig } from '../../src/config.js';
import { ExitCode } from '../../src/errors.js';
import { parseDuration } from '../../src/scrape/duration.js';
import { longestStopMs, read, root } from './support.js';

const unit = read('deploy/systemd/trawl@.service');
/** Every value of a key, in order. */
const values = (key: string): string[] =>
  [...unit.matchAll(/^(\w+)=(.*)$/gm)].filter(([, name]) => name === key).map(([, , value = '']) => value);

describe('trawl@.service', () => {
  let credentials: string;
  beforeAll(() => {
    credentials = mkdtempSync(join(tmpdir(), 'trawl-credentials-'));
    for (const credential of values('LoadCredential')) {
      writeFileSync(join(credentials, credential.split(':')[0] ?? ''), 'secret');
    }
  });
  afterAll(() => rmSync(credentials, { recursive: true, force: true }));

  const load = (env: NodeJS.ProcessEnv) =>
    loadConfig({ text: read('deploy/systemd/trawl.yaml'), env, cwd: root });
  /** With what systemd puts into its environment. */
  const config = () => {
    const [variables = ''] = values('Environment');
    const env = Object.fromEntries(
      variables
        .replaceAll('%i', '9465')
        .split(' ')
        .map((pair) => pair.split('=')),
    );
    return load({ ...env, CREDENTIALS_DIRECTORY: credentials });
  };

  it('hands the credentials that the configuration asks for, and no other', () => {
    expect(config()).toMatchObject({
      redis: { password: 'secret' },
      servers: { apify: { token: 'secret' } },
    });
    expect(values('LoadCredential')).toHaveLength(2);
    expect(unit).not.toMatch(/^(Environment|SetCredential)=.*(TOKEN|PASSWORD)/m);
  });

  it('lets a command of root find them where they come from', () => {
    const places = values('LoadCredential').map((each) => each.split(':')[1] ?? '');
    try {
      load({});
      expect.unreachable('there are no credentials here');
    } catch (error) {
      for (const place of places) expect(String(error)).toContain(place);
    }
  });

  it('has the port of its instance, and writes where it may', () => {
    const { http, results } = config();
    expect(http.port).toBe(9465);
    const made = values('StateDirectory')[0]
      ?.split(' ')
      .map((each) => `/var/lib/${each}`);
    expect(made).toContain(results.dir);
    expect(values('ProtectSystem')).toEqual(['strict']);
  });

  it('leaves a worker the time that it may take to stop, by the signal that it listens to', () => {
    const span = parseDuration(values('TimeoutStopSec')[0]?.replace('min', 'm'));
    expect(span).toBeGreaterThan(longestStopMs(config()));
    expect(values('KillSignal')).toEqual(['SIGTERM']);
    expect(values('RestartPreventExitStatus')).toEqual([String(ExitCode.usage)]);
  });

  it('is not root and has no capabilities', () => {
    expect(values('User')).toEqual(['trawl']);
    expect(values('CapabilityBoundingSet')).toEqual(['']);
    expect(values('NoNewPrivileges')).toEqual(['yes']);
  });
});
