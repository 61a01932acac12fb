// biome-ignore-all lint/suspicious/noTemplateCurlyInString: it is the syntax of variables in a configuration
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { expand } from '../../src/config/expand.js';
import { loadConfig } from '../../src/config.js';
import { configFolder, load, loadError } from './support.js';

const minimal = 'servers: { my-apify: { token: abcdef, tools: [a/b] } }\n';

test.each([
  ['plain', 'plain'],
  ['${A}', 'one'],
  ['x${A}y${B}z', 'xoneytwoz'],
  ['${NONE:-fallback}', 'fallback'],
  ['${NONE:-}', ''],
  ['${EMPTY:-fallback}', 'fallback'],
  ['${EMPTY}', ''],
  ['${A:-fallback}', 'one'],
  ['$${A}', '${A}'],
  ['$A $ {A} 100$', '$A $ {A} 100$'],
  ['${SELF}', '${A}'],
])('%s expands to "%s"', (text, expected) => {
  expect(expand(text, { A: 'one', B: 'two', EMPTY: '', SELF: '${A}' }).text).toBe(expected);
});

test('every unset variable of a value is reported, and only in values', () => {
  const error = loadError(`\${KEY}: 1\nservers: { s: { token: "\${A}\${B}", tools: ["\${C}"] } }\n`);
  expect(error.message).toContain('unknown key "${KEY}"');
  for (const name of ['A', 'B', 'C'])
    expect(error.message).toContain(`environment variable ${name} to be set`);
  const alone = loadError('servers:\n  s:\n    token: "${A}"\n    tools: [a/b]\n');
  expect(alone).toMatchObject({
    code: 'config_env_missing',
    message: 'trawl.yaml:3: servers.s.token: expected the environment variable A to be set, found it unset',
  });
});

test('a value that expands to nothing counts as not given, and numbers are read from expanded text', () => {
  const config = load(
    `${minimal}deadline: "\${D:-}"\nhttp: { port: "\${PORT}" }\nresults: { gzip: "\${GZIP}" }`,
    {
      env: { PORT: '8080', GZIP: 'true' },
    },
  );
  expect(config).toMatchObject({ deadlineMs: 3_600_000, http: { port: 8080 }, results: { gzip: true } });
});

test.each([
  ['TRAWL_SERVERS__MY_APIFY__LIMITS__RUNS', '7', { servers: { 'my-apify': { limits: { runs: 7 } } } }],
  [
    'TRAWL_SERVERS__MY-APIFY__LIMITS__REQUESTSPERSECOND',
    '2.5',
    { servers: { 'my-apify': { limits: { requestsPerSecond: 2.5 } } } },
  ],
  [
    'TRAWL_SERVERS__MY_APIFY__LIMITS__REQUESTS_PER_SECOND',
    '3',
    { servers: { 'my-apify': { limits: { requestsPerSecond: 3 } } } },
  ],
  [
    'TRAWL_SERVERS__MY_APIFY__TOOLS',
    'c/d, e~f',
    { servers: { 'my-apify': { tools: { 'c/d': {}, 'e/f': {} } } } },
  ],
  ['TRAWL_SERVERS__MY_APIFY__TOKEN', '12345', { servers: { 'my-apify': { token: '12345' } } }],
  ['TRAWL_results__pageBytes', '2048', { results: { pageBytes: 2048 } }],
  ['TRAWL_DEADLINE', '90', { deadlineMs: 90_000 }],
  ['TRAWL_POLL__INTERVAL', '1m', { poll: { intervalMs: 60_000 } }],
  ['TRAWL_INTAKE__LIST', 'false', { intake: { list: false } }],
  ['TRAWL_REDIS__URL', '/run/redis.sock', { redis: { url: '/run/redis.sock' } }],
  ['TRAWL_REDIS__SENTINEL__HOSTS', 'a:1', null],
])('%s=%s overrides', (name, value, expected) => {
  const env = { [name]: value };
  if (expected === null) {
    expect(loadError(minimal, { env }).message).toContain('redis.sentinel.name: expected the name');
  } else {
    expect(load(minimal, { env })).toMatchObject(expected);
  }
});

test.each([
  ['TRAWL_HTP__PORT', 'TRAWL_HTTP__PORT'],
  ['TRAWL_LOG_LEVEL', 'TRAWL_LOG__LEVEL'],
  ['TRAWL_SERVERS__MYAPIFI__TOKEN', 'TRAWL_SERVERS__MY_APIFY__TOKEN'],
  ['TRAWL___PROTO____X', 'TRAWL_'],
])('the unknown override %s is an error that names %s', (name, near) => {
  const error = loadError(minimal, { env: { [name]: 'value-of-it' } });
  expect(error.code).toBe('config_invalid');
  expect(error.message).toContain(`${name}: unknown override; the nearest known one is ${near}`);
  expect(error.message).not.toContain('value-of-it');
});

test('an override that fits two servers is refused', () => {
  const error = loadError('servers: { a-b: { tools: [a/b] }, ab: { tools: [a/b] } }', {
    env: { TRAWL_SERVERS__AB__TOKEN: 'x' },
  });
  expect(error.message).toContain('found that of servers.a-b.token and servers.ab.token');
});

test('empty variables and those that Kubernetes sets are not overrides', () => {
  const env = {
    TRAWL_DEADLINE: '',
    TRAWL_SERVICE_HOST: '10.0.0.1',
    TRAWL_SERVICE_PORT: '9464',
    TRAWL_SERVICE_PORT_METRICS: '9464',
    TRAWL_PORT: 'tcp://10.0.0.1:9464',
    TRAWL_REDIS_PORT_6379_TCP: 'tcp://10.0.0.2:6379',
    TRAWL_REDIS_PORT_6379_TCP_ADDR: '10.0.0.2',
    OTHER_TRAWL_X: '1',
  };
  expect(load(minimal, { env }).deadlineMs).toBe(3_600_000);
});

test('command-line overrides win over the environment; their paths are meant from here', () => {
  const folder = configFolder(`${minimal}results: { dir: out }`);
  const file = join(folder, 'trawl.yaml');
  expect(loadConfig({ cwd: '/', file, env: {} }).results.dir).toBe(join(folder, 'out'));
  const env = { TRAWL_RESULTS__DIR: 'env-out' };
  expect(loadConfig({ cwd: '/srv', file, env }).results.dir).toBe('/srv/env-out');
  const overrides = { 'results.dir': 'cli-out', 'http.port': 0 };
  expect(loadConfig({ cwd: '/srv', file, env, overrides })).toMatchObject({
    results: { dir: '/srv/cli-out' },
    http: { port: 0 },
  });
  expect(loadError(minimal, { overrides: { 'result.dir': 'x' } }).message).toContain(
    'option result.dir: unknown override; the nearest known one is results.dir',
  );
});

test.each([
  ['{ url: "redis://h" }', { url: 'redis://h:6379', tls: false }],
  ['{ url: "rediss://u@h:1/0" }', { url: 'rediss://h:1', tls: true, username: 'u', db: 0 }],
  ['{ url: "redis://:p%40%3A@[::1]:7" }', { url: 'redis://[::1]:7', tls: false, password: 'p@:' }],
  ['{ url: "redis://h", tls: true, db: 3 }', { url: 'redis://h:6379', tls: true, db: 3 }],
  [
    '{ url: "redis://a:b@h", username: u, password: p }',
    { url: 'redis://h:6379', tls: false, username: 'u', password: 'p' },
  ],
  ['{ url: /run/r.sock }', { url: '/run/r.sock', tls: false }],
  ['{ url: "unix:///run/r.sock" }', { url: '/run/r.sock', tls: false }],
  [
    '{ sentinel: { name: m, hosts: ["a:26379", "[::1]:2"], password: q }, password: p }',
    {
      url: '',
      tls: false,
      password: 'p',
      sentinel: {
        name: 'm',
        hosts: [
          { host: 'a', port: 26379 },
          { host: '::1', port: 2 },
        ],
        password: 'q',
      },
    },
  ],
])('redis: %s', (yaml, expected) => {
  const { sentinel, ...redis } = load(`${minimal}redis: ${yaml}`).redis;
  expect({ ...redis, ...(sentinel ? { sentinel: { ...sentinel } } : {}) }).toEqual(expected);
});

test.each([
  ['{ url: "http://h" }', 'redis.url: expected redis://'],
  ['{ url: relative.sock }', 'redis.url: expected redis://'],
  ['{ url: "redis://h/x" }', 'found more after the host'],
  ['{ url: "redis://h?db=1" }', 'found more after the host'],
  ['{ url: "redis://u:%zz@h" }', 'found a broken escape'],
  ['{ url: "redis://h/1", db: 2 }', 'redis.db: expected the database of the url, 1, found 2'],
  ['{ url: "rediss://h", tls: false }', 'redis.tls: expected true or nothing'],
  ['{ tls: true }', 'redis.tls: expected a host'],
  ['{ url: "redis://h", sentinel: { name: m, hosts: ["a:1"] } }', 'either "url" or "sentinel"'],
  ['{ sentinel: { name: m, hosts: [a] } }', 'redis.sentinel.hosts[0]: expected host:port, found "a"'],
  ['{ sentinel: { name: m, hosts: [] } }', 'expected at least one entry'],
  ['{ passwrd: x }', 'unknown key "passwrd"; the nearest known one is "password"'],
])('redis: %s is refused', (yaml, message) => {
  expect(loadError(`${minimal}redis: ${yaml}`).message).toContain(message);
});

test.each([
  ['10.0.0.5', true],
  ['10.0.0.0/24', true],
  ['fd00::/8', true],
  ['0.0.0.0/0', false],
  ['10.0.0.0/33', false],
  ['loopback', false],
  ['proxy.internal', false],
])('http.trustedProxies takes %s: %s', (address, taken) => {
  const text = `${minimal}\nhttp: { trustedProxies: ['${address}'] }\n`;
  if (taken) expect(load(text).http.trustedProxies).toEqual([address]);
  else expect(loadError(text).message).toContain('http.trustedProxies[0]: expected an IP address or a block');
});
