import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { mustBeFailure } from '../fuzz/classified.js';
import { type FakeServer, startFake } from '../mcp/fake-server.js';
import { actor, failureOf, setup, token } from '../mcp/setup.js';
import { openThief } from './front.js';

const closers: (() => Promise<unknown> | unknown)[] = [];
afterEach(async () => {
  vi.unstubAllEnvs();
  for (const close of closers.splice(0).reverse()) await close();
});

async function clientOf(url: string) {
  const { server } = setup(url);
  closers.push(() => server.close());
  return {
    describe: () => server.describe({ fresh: true }),
    start: () =>
      server.start({ tool: actor, input: {}, options: {}, runTimeoutMs: 60_000, timeoutMs: 5_000 }),
    poll: () => server.poll('run00000000000001'),
    abort: () => server.abort('run00000000000001'),
    read: () => server.readPage({ datasetId: 'ds1', offset: 0, limit: 10, fields: [] }),
    record: () => server.readRecord('kv1', 'OUTPUT'),
    list: () => server.listRuns({ offset: 0, limit: 10 }),
  };
}

describe('a redirect to another origin', () => {
  const calls = ['describe', 'start', 'poll', 'abort', 'read', 'record', 'list'] as const;
  it.each(calls)('is refused by %s, and the token stays here', async (call) => {
    const thief = await openThief();
    const fake: FakeServer = await startFake();
    closers.push(
      () => fake.close(),
      () => thief.close(),
    );
    const client = await clientOf(fake.url);
    for (const status of [301, 302, 303, 307, 308]) {
      for (const location of [
        thief.url,
        thief.url.replace('http:', 'https:'),
        '//127.0.0.1:9/',
        'file:///etc/passwd',
      ]) {
        const away: FakeServer['onCall'] = ({ http }) => http(status, { location });
        if (call === 'describe') fake.onList = away as FakeServer['onList'];
        else fake.onCall = away;
        const failure = failureOf(await client[call]());
        mustBeFailure(failure);
        expect(failure).toMatchObject({ refusal: 'server', holdReason: 'unreachable' });
      }
    }
    expect(thief.stolen).toEqual([]);
  });

  it('is refused on connecting, too', async () => {
    const thief = await openThief();
    const fake = await startFake();
    closers.push(
      () => fake.close(),
      () => thief.close(),
    );
    fake.onInitialize = ({ http }) => http(307, { location: thief.url });
    const client = await clientOf(fake.url);
    expect(failureOf(await client.poll())).toMatchObject({ refusal: 'server', holdReason: 'unreachable' });
    expect(thief.stolen).toEqual([]);
  });
});

describe('TLS', () => {
  const file = (name: string) => readFileSync(new URL(`../redis/tls/${name}`, import.meta.url));

  async function selfSigned() {
    const seen: string[] = [];
    const server = createServer({ cert: file('cert.pem'), key: file('key.pem') }, (request, response) => {
      seen.push(request.url ?? '');
      response.end('{}');
    });
    server.on('tlsClientError', () => undefined);
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    closers.push(async () => {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    });
    return { seen, url: `https://localhost:${(server.address() as AddressInfo).port}/` };
  }

  it.each([
    ['as it is', {}],
    ['with the switch that turns checks off', { NODE_TLS_REJECT_UNAUTHORIZED: '0' }],
  ])('a certificate nobody vouches for is refused, %s', async (_name, env) => {
    for (const [name, value] of Object.entries(env)) vi.stubEnv(name, value);
    const { seen, url } = await selfSigned();
    const client = await clientOf(url);
    for (const call of [client.describe, client.start, client.poll]) {
      const failure = failureOf(await call());
      expect(failure).toMatchObject({ kind: 'network_error', refusal: 'server', noEffect: true });
      expect(failure.message).toMatch(/SELF_SIGNED|UNABLE_TO_VERIFY|CERT|ALTNAME/);
      expect(failure.message).not.toContain(token);
    }
    expect(seen).toEqual([]);
  });
});
