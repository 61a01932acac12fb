import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { loadConfig, minimalConfig } from '../../src/config.js';
import { configFolder, load, loadError, raised, tempFolder } from './support.js';

const designExample = `redis: { url: "\${REDIS_URL:-}" }   # empty: a private redis-server
prefix: "{trawl}"
servers:
  apify:
    profile: apify
    url: https://mcp.apify.com
    token: "\${APIFY_TOKEN}"
    via: auto
    tools:
      - compass/crawler-google-places
      - { name: trudax/yellow-pages-us-scraper, deadline: 10m, memory: 1024, minItems: 1, price: { start: 0.007, item: 0.004 } }
    limits: { runs: 5, requestsPerSecond: 20 }
start: { timeout: 5m }
poll: { interval: 30s, waitSecs: 0 }
deadline: 1h
keep: { settled: 7d, failed: 30d, max: 100000 }
results: { sink: file, dir: ./results, gzip: false, pageBytes: 524288 }
limits: { inputBytes: 98304, answerBytes: 33554432 }
intake: { stream: true, list: true, backlog: 100000 }
http: { host: 127.0.0.1, port: 9464 }
shutdown: { grace: 30s }
log: { level: info }
`;
const minimal = 'servers: { apify: { token: abcdef, tools: [compass/crawler-google-places] } }\n';

test('the example of the design means what the design says', () => {
  const folder = configFolder(designExample);
  const config = loadConfig({ cwd: folder, env: { APIFY_TOKEN: 'apify_api_1' } });
  expect(config).toMatchObject({
    file: join(folder, 'trawl.yaml'),
    redis: { url: '', tls: false },
    start: { timeoutMs: 300_000 },
    poll: { intervalMs: 30_000, waitSecs: 0 },
    deadlineMs: 3_600_000,
    keep: { settledMs: 604_800_000, failedMs: 2_592_000_000, max: 100_000 },
    results: { sink: 'file', dir: join(folder, 'results'), gzip: false, pageBytes: 524_288 },
    http: { host: '127.0.0.1', port: 9464, token: null, names: [], trustedProxies: [] },
    shutdown: { graceMs: 30_000 },
    brake: { window: 20, badRatio: 0.8, action: 'hold' },
    warnings: [],
  });
  expect(config.servers.apify).toMatchObject({
    token: 'apify_api_1',
    limits: { runs: 5, requestsPerSecond: 20, memoryMb: null },
    tools: {
      'compass/crawler-google-places': { deadlineMs: null, memory: null, minItems: null, price: null },
      'trudax/yellow-pages-us-scraper': {
        deadlineMs: 600_000,
        memory: 1024,
        minItems: 1,
        price: { start: 0.007, item: 0.004 },
      },
    },
  });
});

test('every key but servers has the default that the design shows', () => {
  const { file: _file, servers: _servers, ...given } = load(designExample, { env: { APIFY_TOKEN: 'x' } });
  const { file: _none, servers: _few, ...defaults } = load(minimal);
  const place = (config: typeof given) => ({ ...config, results: { ...config.results, dir: '' } });
  expect(place(defaults)).toEqual(place(given));
});

test('the minimal configuration that the hint shows loads', () => {
  const error = raised(() => loadConfig({ cwd: tempFolder(), env: {} }));
  expect(error).toMatchObject({ code: 'config_missing', exitCode: 2 });
  expect(error.hint).toContain(minimalConfig);
  expect(Object.keys(load(minimalConfig, { env: { APIFY_TOKEN: 'x' } }).servers)).toEqual(['apify']);
});

test('the configuration is frozen to the bottom', () => {
  const config = load(minimal);
  expect(() => Object.assign(config.servers.apify?.limits ?? {}, { runs: 9 })).toThrow(TypeError);
  expect(() => Object.assign(config.servers, { other: {} })).toThrow(TypeError);
});

test('a byte order mark, CRLF and an empty mapping are accepted', () => {
  expect(load(`\ufeffhttp:\r\n${minimal.replace('\n', '\r\n')}`).http.port).toBe(9464);
});

test('names from a prototype are neither servers nor tools', () => {
  const config = load(minimal);
  expect(config.servers.constructor).toBeUndefined();
  expect(config.servers.apify?.tools.toString).toBeUndefined();
});

test('all problems of a file are listed together, in its order, each with line, path, expected and found', () => {
  const error = loadError(
    `servers:
  apify:
    tokn: abc
    token: "\${T}"
    tools: [compass, { name: a/b, dedline: 3 }]
    limits: { runs: five, requestsPerSecond: 0 }
poll: { interval: 15 minuets }
redis: localhost
keep: [7d]
log: { level: loud }
logs: 1
`,
    { env: { TRAWL_HTTP__PORT: '99999' } },
  );
  expect(error.code).toBe('config_invalid');
  expect(error.message.split('\n')).toEqual([
    'trawl.yaml:3: servers.apify.tokn: unknown key "tokn"; the nearest known one is "token"',
    'trawl.yaml:4: servers.apify.token: expected the environment variable T to be set, found it unset',
    'trawl.yaml:5: servers.apify.tools[0].name: expected an Actor as user/name, found "compass"',
    'trawl.yaml:5: servers.apify.tools[1].dedline: unknown key "dedline"; the nearest known one is "deadline"',
    'trawl.yaml:6: servers.apify.limits.runs: expected a whole number from 1 to 1000000, found "five"',
    'trawl.yaml:6: servers.apify.limits.requestsPerSecond: expected a number from 0.01 to 100000, found 0',
    'trawl.yaml:7: poll.interval: expected a duration such as 30s, 15m, 6h or 7d, or seconds as a number, from 0.001s to 1h (15m?), found "15 minuets"',
    'trawl.yaml:8: redis: expected a mapping, found text',
    'trawl.yaml:9: keep: expected a mapping, found a list',
    'trawl.yaml:10: log.level: expected "trace" or "debug" or "info" or "warn" or "error" or "fatal" or "silent", found "loud"',
    'trawl.yaml:11: logs: unknown key "logs"; the nearest known one is "log"',
    'TRAWL_HTTP__PORT: http.port: expected a whole number from 0 to 65535, found "99999"',
  ]);
});

const bomb = `a: &a [x, x, x, x, x, x, x, x]
b: &b [*a, *a, *a, *a, *a, *a, *a, *a]
c: &c [*b, *b, *b, *b, *b, *b, *b, *b]
d: &d [*c, *c, *c, *c, *c, *c, *c, *c]
e: &e [*d, *d, *d, *d, *d, *d, *d, *d]
f: [*e, *e, *e, *e, *e, *e, *e, *e]
`;

test.each([
  ['an empty file', '', /^trawl.yaml:1: servers: expected at least one server, found none$/],
  ['only comments', '# nothing\n', /servers: expected at least one server/],
  ['no servers', 'log: { level: info }', /servers: expected at least one server/],
  ['a list', '- a', /^trawl.yaml:1: expected a mapping, found a list$/],
  ['a scalar', 'hello', /^trawl.yaml:1: expected a mapping, found text$/],
  [
    'a key twice',
    `${minimal}log: {}\nlog: {}\n`,
    /trawl.yaml:3: log: expected each key once, found "log" again/,
  ],
  ['broken YAML', 'servers: [\nx: {', /trawl.yaml:\d: expected YAML, found a mistake/],
  ['two documents', `${minimal}---\n${minimal}`, /more than one document/],
  ['an alias bomb', bomb, /expected at most 50000 values, aliases counted, found more/],
  ['an alias to itself', 'a: &a [*a]', /expected at most 32 levels, found more/],
  ['an unknown alias', 'a: *nobody', /an alias without its anchor/],
  ['a key __proto__', `${minimal}__proto__: { x: 1 }`, /expected a plain key, found one not allowed/],
  ['a server name', 'servers: { "../x": { tools: [a/b] } }', /expected a server name of a-z, 0-9 and "-"/],
  [
    'a tool twice',
    'servers: { a: { tools: [a/b, a~b] } }',
    /expected each tool once, found "a\/b" beside "a\/b"/,
  ],
  [
    'no tools',
    'servers: { a: { tools: [] } }',
    /servers.a.tools: expected at least one entry, found an empty list/,
  ],
  ['missing tools', 'servers: { a: {} }', /servers.a.tools: expected a list, found nothing/],
  [
    'too much memory',
    'servers: { a: { tools: [{ name: a/b, memory: 2048 }], limits: { memoryMb: 1024 } } }',
    /at most limits.memoryMb/,
  ],
  [
    'odd memory',
    'servers: { a: { tools: [{ name: a/b, memory: 1000 }] } }',
    /a power of two from 128 to 32768, found 1000/,
  ],
  [
    'tools in the URL',
    'servers: { a: { url: "https://h/?tools=x", tools: [a/b] } }',
    /expected tools under "tools"/,
  ],
  [
    'a number as a token',
    'servers: { a: { token: 12345, tools: [a/b] } }',
    /token: expected .*, found a number/,
  ],
  ['a broken reference', `${minimal}prefix: "\${-x}"`, /prefix: expected \$\{NAME\} or \$\{NAME:-default\}/],
  [
    'a file that is not text',
    Buffer.from([0xff, 0xfe, 0x61, 0x00]),
    /expected UTF-8 text, found other bytes/,
  ],
  ['a file over 1 MiB', Buffer.alloc(1024 * 1024 + 1, 0x23), /expected at most 1048576 bytes, found more/],
])('%s is refused', (_name, yaml, message) => {
  const error = loadError(yaml);
  expect(error).toMatchObject({ code: 'config_invalid', exitCode: 2 });
  expect(error.message).toMatch(message);
});

test('a directory and a missing file are told apart', () => {
  const folder = tempFolder();
  mkdirSync(join(folder, 'trawl.yaml'));
  const directory = raised(() => loadConfig({ cwd: folder, env: {} }));
  expect(directory.message).toBe('trawl.yaml: expected a file, found a directory');
  const missing = raised(() => loadConfig({ cwd: folder, env: {}, file: 'other.yaml' }));
  expect(missing).toMatchObject({
    code: 'config_missing',
    message: 'other.yaml: expected a configuration file, found none',
  });
});

test.each([
  [
    'polls near the rate limit',
    'limits: { runs: 32, requestsPerSecond: 10 }',
    'poll: { interval: 5s }',
    /32 runs polled every 5s take 6.4 of 10 requests a second, more than half; set poll.interval to 7s/,
  ],
  [
    'more than the hosted server allows',
    'limits: { requestsPerSecond: 50 }',
    '',
    /over the 30 that the hosted server allows/,
  ],
  ['an unencrypted token', 'url: http://mcp.example.org', '', /travels unencrypted/],
  ['no token', 'token: ""', '', /token is empty/],
  ['a short start timeout', '', 'start: { timeout: 30s }', /start.timeout 30s is shorter than the 220s/],
  ['pages over the answer bound', '', 'limits: { answerBytes: 524288 }', /results.pageBytes/],
  ['inputs the server refuses', '', 'limits: { inputBytes: 200000 }', /limits.inputBytes/],
  ['a short token for HTTP', '', 'http: { token: abc123 }', /http.token: shorter than 16/],
  ['memory with direct starts', 'via: direct', '', /memory of a\/b is not applied with via: direct/],
])('warns of %s', (_name, serverKey, topKey, warning) => {
  const token = serverKey.startsWith('token') ? '' : '    token: abcdef\n';
  const yaml = `servers:\n  s:\n${token}    tools: [{ name: a/b, memory: 1024 }]\n    ${serverKey}\n${topKey}\n`;
  expect(load(yaml).warnings).toEqual([expect.stringMatching(warning)]);
});
