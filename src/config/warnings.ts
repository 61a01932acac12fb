import type { Config, ServerConfig } from '../config.js';
import { formatDuration } from '../scrape/duration.js';

/** One call of the server can take that long by its own retries (apify-contract, Errors). */
const longestServerRetryMs = 220_000;
/** The server refuses larger bodies with 413. */
const bodyLimitBytes = 102_400;
const hostedRequestsPerSecond = 30;
const guessableTokenLength = 16;
/** MB that a run counts against `limits.memoryMb` when neither its job nor the configuration says. */
export const usualMemoryMb = 1_024;

/** What is allowed and probably not meant; one sentence each, with the key to change. */
export function warningsOf(config: Omit<Config, 'warnings'>): string[] {
  const warnings: string[] = [];
  for (const server of Object.values(config.servers)) {
    warnings.push(...serverWarnings(server, config).map((text) => `servers.${server.name}: ${text}`));
  }
  if (config.limits.inputBytes > bodyLimitBytes) {
    warnings.push(`limits.inputBytes: MCP servers refuse request bodies over ${bodyLimitBytes} bytes`);
  }
  if (config.results.pageBytes * 2 > config.limits.answerBytes) {
    warnings.push(
      'results.pageBytes: items travel twice in an answer, so a full page exceeds limits.answerBytes; ' +
        `set it to ${Math.floor(config.limits.answerBytes / 2)} or less`,
    );
  }
  if (config.poll.intervalMs > config.deadlineMs) {
    warnings.push('poll.interval: it is longer than the deadline, so every run is looked at only after it');
  }
  if (config.http.token !== null && config.http.token.length < guessableTokenLength) {
    warnings.push(`http.token: shorter than ${guessableTokenLength} characters, it can be guessed`);
  }
  return warnings;
}

function serverWarnings(server: ServerConfig, config: Omit<Config, 'warnings'>): string[] {
  const warnings: string[] = [];
  const { runs, requestsPerSecond } = server.limits;
  const pollsPerSecond = runs / (config.poll.intervalMs / 1000);
  if (pollsPerSecond > requestsPerSecond / 2) {
    const interval = Math.ceil((2 * runs) / requestsPerSecond);
    warnings.push(
      `${runs} runs polled every ${formatDuration(config.poll.intervalMs)} take ${round(pollsPerSecond)} of ` +
        `${requestsPerSecond} requests a second, more than half; set poll.interval to ${interval}s or more`,
    );
  }
  const unknown = Object.values(server.tools).filter((tool) => tool.memory === null);
  if (server.limits.memoryMb !== null && unknown.length > 0) {
    const names = unknown.map((tool) => tool.name).join(', ');
    warnings.push(
      `limits.memoryMb: runs of ${names} count as ${usualMemoryMb} MB unless their job says options.memory; set tools.<name>.memory`,
    );
  }
  const url = new URL(server.url);
  const local = /^(localhost|127\.\d+\.\d+\.\d+|\[::1\])$/.test(url.hostname);
  if (local) return warnings;
  if (server.token === '') warnings.push('token is empty; the server will refuse calls');
  else if (url.protocol === 'http:') warnings.push('the token travels unencrypted; use https://');
  if (url.hostname === 'mcp.apify.com' && requestsPerSecond > hostedRequestsPerSecond) {
    warnings.push(
      `requestsPerSecond is over the ${hostedRequestsPerSecond} that the hosted server allows a user`,
    );
  }
  if (config.start.timeoutMs < longestServerRetryMs) {
    warnings.push(
      `start.timeout ${formatDuration(config.start.timeoutMs)} is shorter than the ` +
        `${longestServerRetryMs / 1000}s a server may retry a start by itself; answers will be lost`,
    );
  }
  for (const tool of Object.values(server.tools)) {
    if (server.via === 'direct' && tool.memory !== null) {
      warnings.push(`memory of ${tool.name} is not applied with via: direct, which takes no run options`);
    }
  }
  return warnings;
}

function round(value: number): string {
  return String(Math.round(value * 10) / 10);
}
