import { dirname, join } from 'node:path';
import type { Writable } from 'node:stream';
import { Redis, type RedisOptions } from 'ioredis';
import type { Config } from '../config.js';
import { TrawlError } from '../errors.js';
import { cleanText } from '../scrape/clean-text.js';
import type { RedisLog } from './log.js';
import { acquirePrivateRedis } from './private-server.js';
import { parseTarget, type RedisAddress } from './target.js';

/**
 * - `worker`: waits for Redis for as long as it is away, and goes on by itself. BullMQ workers need this.
 * - `producer`: fails within seconds, so that its caller can answer, and recovers by itself when Redis is back.
 */
export type RedisRole = 'worker' | 'producer';

const producerTimeoutMs = 5_000;
const maxRetryDelayMs = 2_000;

export interface ConnectionOptions {
  readonly role: RedisRole;
  readonly log: RedisLog;
  /** As shown by CLIENT LIST. */
  readonly name?: string;
  /** How long a producer waits for a connection, and for each answer; default 5 s. Workers wait. */
  readonly timeoutMs?: number;
}

/** A Redis to use, and how to let go of it. */
export interface ResolvedRedis {
  readonly target: Config['redis'];
  /** Started and stopped by Trawl. */
  readonly private: boolean;
  /** Close every connection first. */
  release(): Promise<void>;
}

/**
 * The Redis that the configuration names; else the private one of the configuration's folder (`.trawl/redis`), which
 * is started when it does not run.
 */
export async function resolveRedis(
  config: Pick<Config, 'redis' | 'file'>,
  context: { cwd: string; env: Readonly<Record<string, string | undefined>>; log: RedisLog },
): Promise<ResolvedRedis> {
  if (config.redis.url !== '' || config.redis.sentinel) {
    return { target: config.redis, private: false, release: async () => {} };
  }
  const folder = config.file === null ? context.cwd : dirname(config.file);
  const server = await acquirePrivateRedis({
    dir: join(folder, '.trawl', 'redis'),
    path: context.env.PATH,
    log: context.log,
  });
  return { target: { url: server.url, tls: false }, private: true, release: server.release };
}

/**
 * A connection that connects, reconnects and follows a failover by itself. Every change between reachable and not is
 * logged once; a secret never is. Hand such instances to BullMQ.
 * @throws TrawlError `config_invalid` for a URL that is none
 */
export function createRedis(target: Config['redis'], options: ConnectionOptions): Redis {
  const address = parseTarget(target);
  const client = new Redis({
    ...addressOptions(address, options.role),
    ...roleOptions(options.role, options.timeoutMs),
    connectionName: options.name ?? `trawl-${options.role}`,
  });
  scrubErrorsOf(client);
  if (options.role === 'worker') gatherWrites(client);
  logStateOf(client, address, options.log);
  return client;
}

/**
 * `createRedis`, once it is ready.
 * @throws TrawlError `redis_unreachable` when that takes longer than `timeoutMs`; the connection is closed then
 */
export async function connectRedis(target: Config['redis'], options: ConnectionOptions): Promise<Redis> {
  const client = createRedis(target, options);
  const timeoutMs = options.timeoutMs ?? producerTimeoutMs;
  let cause: unknown = new Error(`no answer within ${timeoutMs / 1000}s`);
  const ready = await new Promise<boolean>((resolve) => {
    const timer = setTimeout(() => settle(false), timeoutMs);
    const settle = (value: boolean) => {
      clearTimeout(timer);
      client.off('error', onError);
      resolve(value);
    };
    const onError = (error: Error & { code?: string }) => {
      cause = error;
      // Waiting does not change a wrong password or certificate.
      if (refused.test(error.message) || certificate.test(error.code ?? '')) settle(false);
    };
    client.on('error', onError);
    client.once('ready', () => settle(true));
    client.once('end', () => settle(false));
  });
  if (ready) return client;
  client.disconnect();
  throw toRedisError(cause, target);
}

/**
 * Commands that are sent in the same turn of the event loop leave in one write: a write each is a system call each, and a
 * scrape needs about fifty commands.
 */
function gatherWrites(client: Redis): void {
  client.on('connect', () => {
    const { stream } = client as unknown as { stream: Writable };
    const write = stream.write;
    stream.write = ((...args: Parameters<Writable['write']>) => {
      if (stream.writableCorked === 0) {
        stream.cork();
        process.nextTick(() => stream.uncork());
      }
      return write.apply(stream, args);
    }) as Writable['write'];
  });
}

/** Where a target is, for people: no user, no password. */
export function describeRedis(target: Config['redis']): string {
  return parseTarget(target).label;
}

/**
 * What ioredis or BullMQ threw because Redis is away, slow or refuses us, as `redis_unreachable`; anything else as it is.
 * The message holds no secret.
 */
export function toRedisError(error: unknown, target: Config['redis']): unknown {
  if (error instanceof TrawlError) return error;
  const address = parseTarget(target);
  const message = error instanceof Error ? error.message : String(error);
  if (!isAway(error, message)) return error;
  // No cause: ioredis errors carry the arguments of the command.
  return new TrawlError('redis_unreachable', `Redis at ${address.label}: ${safe(message, address)}`, {
    hint: refused.test(message)
      ? 'Check redis.username and redis.password.'
      : 'Nothing was lost; try again when Redis answers. `trawl doctor` says what is wrong.',
  });
}

const certificate = /^(ERR_(SSL|TLS)_\w+|\w*CERT\w*)$/;
const refused = /^(WRONGPASS|NOAUTH|NOPERM)/;
const away =
  /^(WRONGPASS|NOAUTH|NOPERM|READONLY|LOADING|MASTERDOWN|CLUSTERDOWN|UNBLOCKED|TRYAGAIN)\b|max retries per request|Command timed out|Connection is closed|Connection ended|isn't writeable|All sentinels are unreachable|no answer within|connect E|read E|getaddrinfo/i;
const awayCodes =
  /^(ECONN(REFUSED|RESET|ABORTED)|EPIPE|ETIMEDOUT|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|ENOENT|EACCES)$/;

function isAway(error: unknown, message: string): boolean {
  const code = (error as { code?: unknown } | null)?.code;
  return away.test(message) || (typeof code === 'string' && (awayCodes.test(code) || certificate.test(code)));
}

function addressOptions(address: RedisAddress, role: RedisRole): RedisOptions {
  const tls = address.tls ? { tls: address.host ? { servername: serverName(address.host) } : {} } : {};
  const login: RedisOptions = { username: address.username, password: address.password, db: address.db };
  if (address.sentinel) {
    return {
      ...login,
      ...tls,
      enableTLSForSentinelMode: address.tls,
      ...(address.tls ? { sentinelTLS: {} } : {}),
      sentinels: address.sentinel.hosts.map(({ host, port }) => ({ host, port })),
      sentinelUsername: address.sentinel.username,
      sentinelPassword: address.sentinel.password,
      name: address.sentinel.name,
      // A master that froze keeps its connections open: only the sentinels tell that it is none any more.
      failoverDetector: role === 'worker',
      sentinelRetryStrategy: (times) =>
        role === 'producer' && times > 3 ? null : Math.min(100 * times, maxRetryDelayMs),
    };
  }
  return address.path !== undefined
    ? { ...login, path: address.path }
    : { ...login, ...tls, host: address.host, port: address.port };
}

/** SNI takes names, not addresses. */
function serverName(host: string): string | undefined {
  return /^[\d.]+$|:/.test(host) ? undefined : host;
}

function roleOptions(role: RedisRole, timeoutMs = producerTimeoutMs): RedisOptions {
  const retryStrategy = (times: number) =>
    Math.min(50 * 2 ** Math.min(times - 1, 10), maxRetryDelayMs) + Math.random() * 50;
  switch (role) {
    case 'worker':
      return {
        maxRetriesPerRequest: null,
        retryStrategy,
        // After a failover the old master refuses writes, without effect: connect anew and send the command again.
        reconnectOnError: (error) => (/^READONLY/.test(error.message) ? 2 : /^UNBLOCKED/.test(error.message)),
      };
    case 'producer':
      return {
        maxRetriesPerRequest: 2,
        connectTimeout: timeoutMs,
        commandTimeout: timeoutMs,
        retryStrategy,
        reconnectOnError: (error) => /^READONLY/.test(error.message),
      };
    default:
      return role satisfies never;
  }
}

/**
 * Error events lose the command they belong to: its arguments hold the password when the login fails, and listeners
 * (BullMQ passes the event on) log whole errors. Copies, which BullMQ makes for blocking commands, are treated alike.
 */
function scrubErrorsOf(client: Redis): void {
  client.prependListener('error', (error: Error & { command?: unknown }) => {
    delete error.command;
  });
  const duplicate = client.duplicate.bind(client);
  client.duplicate = (override) => {
    const copy = duplicate(override);
    scrubErrorsOf(copy);
    return copy;
  };
}

/** One line when Redis goes, one for each further cause, one when it is back. */
function logStateOf(client: Redis, address: RedisAddress, log: RedisLog): void {
  let causes = new Set<string>();
  client.on('error', (error: Error & { code?: string }) => {
    const cause = error.code ?? error.message.split(' ')[0] ?? '';
    if (causes.has(cause)) return;
    causes.add(cause);
    log.warn({ redis: address.label }, `Redis is not reachable: ${safe(error.message, address)}`);
  });
  client.on('ready', () => {
    if (causes.size > 0) log.info({ redis: address.label }, 'Redis is reachable again');
    causes = new Set();
  });
}

function safe(message: string, address: RedisAddress): string {
  let text = message;
  for (const secret of address.secrets) text = text.replaceAll(secret, '***');
  return cleanText(text, 300);
}
