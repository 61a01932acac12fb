// biome-ignore-all lint/suspicious/noTemplateCurlyInString: it is the syntax of variables in a configuration
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { inspect } from 'node:util';
import { expect, test } from 'vitest';
import { configSecrets, describeConfig, loadConfig, redact } from '../../src/config.js';
import { configFolder, load, loadError, raised } from './support.js';

const canary = 'canary-5f1d2e';
const yaml = `redis: { url: "redis://user:${canary}-a@h:6380/2" }
servers: { apify: { token: ${canary}-b, tools: [a/b] } }
http: { token: ${canary}-c-long-enough }
`;

test('credentials of a redis url go to their own fields, and nothing printable shows a secret', () => {
  const config = load(yaml);
  expect({ ...config.redis }).toEqual({
    url: 'redis://h:6380',
    username: 'user',
    password: `${canary}-a`,
    db: 2,
    tls: false,
  });
  const server = config.servers.apify;
  const printed = [config, config.redis, server, config.http].flatMap((part) => [
    JSON.stringify(part),
    inspect(part, { depth: 9, showHidden: true }),
    JSON.stringify({ part }),
  ]);
  printed.push(JSON.stringify(describeConfig(config)), String(config.redis));
  for (const text of printed) expect(text).not.toContain(canary);
  expect(describeConfig(config)).toMatchObject({
    redis: { url: 'redis://h:6380', password: '[secret]' },
    servers: { apify: { token: '[secret]' } },
    http: { token: '[secret]' },
  });
  expect(configSecrets(config)).toEqual([`${canary}-a`, `${canary}-c-long-enough`, `${canary}-b`]);
  expect(redact(`refused: ${canary}-b and ${canary}-a!`, config)).toBe('refused: [secret] and [secret]!');
});

test('an absent secret is shown as absent', () => {
  const config = load('servers: { s: { tools: [a/b] } }');
  expect(describeConfig(config)).toMatchObject({ http: { token: null }, servers: { s: { token: '' } } });
});

test.each([
  ['a malformed redis url', `redis: { url: "redi://u:${canary}@h" }`],
  ['a redis url with a path', `redis: { url: "redis://u:${canary}@h/0/x?a=${canary}" }`],
  ['a token with a line break', `servers: { s: { token: "${canary}\\nx", tools: [a/b] } }`],
  ['a token in a list', `servers: { s: { token: [${canary}], tools: [a/b] } }`],
  ['a server that is a text', `servers: { s: ${canary} }`],
  ['a secret under a misspelt key', `servers: { s: { tokn: ${canary}, tools: [a/b] } }`],
  ['credentials in a server url', `servers: { s: { url: "https://u:${canary}@h", tools: [a/b] } }`],
  ['a token as a parameter', `servers: { s: { url: "https://h/?token=${canary}", tools: [a/b] } }`],
  ['broken YAML beside it', `servers: { s: { token: ${canary}, tools: [a/b] }\n  "${canary}" "x"\n`],
  ['a variable in a wrong place', 'log: { level: "${SECRET}" }'],
  [
    'a token that is repeated elsewhere',
    `servers: { s: { token: ${canary}, tools: [a/b] } }\nlog: { level: ${canary} }`,
  ],
])('the error about %s does not quote it', (_name, text) => {
  const error = loadError(text, { env: { SECRET: canary } });
  expect(error.code).toBe('config_invalid');
  expect(`${error.message}${error.stack}${error.hint}${inspect(error)}`).not.toContain(canary);
});

test('secrets are read from files, trimmed, relative to the configuration file', () => {
  const folder = configFolder(
    'redis: { urlFile: secrets/url, passwordFile: secrets/redis }\n' +
      'servers: { s: { tokenFile: ./secrets/token, tools: [a/b] } }\nhttp: { tokenFile: "secrets/http" }\n',
  );
  mkdirSync(join(folder, 'secrets'));
  writeFileSync(join(folder, 'secrets/url'), 'rediss://r.example:6379\n');
  writeFileSync(join(folder, 'secrets/redis'), ' redis-password \r\n');
  writeFileSync(join(folder, 'secrets/token'), '\ufeffthe-token\n');
  writeFileSync(join(folder, 'secrets/http'), 'http-token-of-16-chars');
  const config = loadConfig({ cwd: '/', file: join(folder, 'trawl.yaml'), env: {} });
  expect({ ...config.redis }).toEqual({
    url: 'rediss://r.example:6379',
    password: 'redis-password',
    tls: true,
  });
  expect(config.servers.s?.token).toBe('the-token');
  expect(config.http.token).toBe('http-token-of-16-chars');
});

test('an override stands against a secret of the file however that one is given', () => {
  const folder = configFolder('servers: { s: { tokenFile: nowhere, tools: [a/b] } }');
  expect(loadConfig({ cwd: folder, env: { TRAWL_SERVERS__S__TOKEN: 'given' } }).servers.s?.token).toBe(
    'given',
  );
  const other = configFolder('servers: { s: { token: old, tools: [a/b] } }');
  writeFileSync(join(other, 'new'), 'from-a-file');
  const env = { TRAWL_SERVERS__S__TOKENFILE: 'new' };
  expect(loadConfig({ cwd: other, env }).servers.s?.token).toBe('from-a-file');
});

test.each([
  ['missing', () => {}, 'no such file'],
  ['a directory', (file: string) => mkdirSync(file), 'a directory'],
  ['empty', (file: string) => writeFileSync(file, ' \n'), 'an empty one'],
  ['huge', (file: string) => writeFileSync(file, 'x'.repeat(65_537)), 'more than 65536 bytes'],
])('a secret file that is %s is named with its line', (_name, make, found) => {
  const folder = configFolder('servers:\n  s:\n    tokenFile: t\n    tools: [a/b]\n');
  make(join(folder, 't'));
  expect(raised(() => loadConfig({ cwd: folder, env: {} }))).toMatchObject({
    code: 'config_secret_unreadable',
    exitCode: 2,
    message: `trawl.yaml:3: servers.s.tokenFile: expected a file with one secret, found ${found}: t`,
  });
});

test('a secret and its file together are refused', () => {
  const error = loadError('servers: { s: { token: a, tokenFile: b, tools: [a/b] } }');
  expect(error.message).toContain('expected either "token" or "tokenFile", found both');
});
