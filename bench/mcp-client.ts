/**
 * What a call costs over each client: `npx tsx bench/mcp-client.ts [calls]`. Server and client are processes of their
 * own; 32 calls at once of one small answer. Prints calls a second, client CPU per call, and that CPU as
 * a multiple of the limit's (`undici.request` and `JSON.parse`, no MCP client at all); on a busy machine only the CPU
 * means something.
 */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { fileURLToPath } from 'node:url';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { Agent, request } from 'undici';
import type { ServerConfig } from '../src/config.js';
import { createLeanFetch } from '../src/mcp/lean-fetch.js';
import { createLimiter, memoryTokens } from '../src/mcp/limiter.js';
import { type ApifyServerOptions, createApifyServer } from '../src/mcp/profiles/apify.js';

type Json = Record<string, unknown>;
interface Subject {
  readonly name: string;
  call(): Promise<unknown>;
  close(): Promise<void>;
}

const concurrency = 32;
const runId = 'run00000000000001';
const params = { name: 'get-actor-run', arguments: { runId, waitSecs: 0 } };

function recordedResult(name: string, exchange = 1): Json {
  const file = new URL(`../test/wire/${name}.json`, import.meta.url);
  const { messages } = JSON.parse(readFileSync(file, 'utf8')) as { messages: { message: Json }[] };
  return messages[exchange]?.message.result as Json;
}

function serve(): void {
  const initialize = recordedResult('initialize-and-tools-list');
  const run = JSON.stringify(recordedResult('poll-running'));
  const server = createServer((incoming, response) => {
    let body = '';
    incoming.on('data', (chunk) => {
      body += chunk;
    });
    incoming.on('end', () => {
      if (incoming.method !== 'POST') return response.writeHead(405).end();
      const { id, method } = JSON.parse(body) as { id?: number; method: string };
      if (id === undefined) return response.writeHead(202).end();
      const result = method === 'initialize' ? JSON.stringify(initialize) : run;
      const json = `{"jsonrpc":"2.0","id":${id},"result":${result}}`;
      const sse = incoming.url?.includes('sse') === true;
      response.writeHead(200, {
        'content-type': sse ? 'text/event-stream' : 'application/json',
        'mcp-session-id': 'bench',
      });
      return response.end(sse ? `event: message\ndata: ${json}\n\n` : json);
    });
  });
  server.listen(0, '127.0.0.1', () => process.send?.((server.address() as AddressInfo).port));
}

function rawSubject(url: URL): Subject {
  const agent = new Agent();
  let id = 0;
  return {
    name: 'undici.request and JSON.parse: the limit',
    async call() {
      const { body } = await request(url, {
        dispatcher: agent,
        method: 'POST',
        headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
        body: JSON.stringify({ jsonrpc: '2.0', id: ++id, method: 'tools/call', params }),
      });
      const text = await body.text();
      return JSON.parse(text.startsWith('event') ? text.slice(text.indexOf('data: ') + 6) : text);
    },
    close: () => agent.destroy(),
  };
}

async function sdkSubject(url: URL, lean: boolean): Promise<Subject> {
  const client = new Client({ name: 'bench', version: '0' });
  const leanFetch = createLeanFetch({ answerBytes: 1_000_000 });
  await client.connect(new StreamableHTTPClientTransport(url, lean ? { fetch: leanFetch.fetch } : {}));
  return {
    name: lean ? 'SDK with the lean fetch' : 'SDK as it comes',
    call: () => client.callTool(params),
    async close() {
      await client.close();
      await leanFetch.close();
    },
  };
}

function profileSubject(url: URL): Subject {
  const server: ServerConfig = {
    name: 'bench',
    profile: 'apify',
    url: url.href,
    token: 'bench-token',
    via: 'auto',
    tools: {},
    limits: { runs: 1, requestsPerSecond: 1_000_000, memoryMb: null },
  };
  const log = { debug: () => undefined, warn: () => undefined } as unknown as ApifyServerOptions['log'];
  const limiter = createLimiter(memoryTokens(1_000_000));
  const profile = createApifyServer({
    server,
    answerBytes: 1_000_000,
    limiter,
    observe: () => undefined,
    log,
  });
  return {
    name: 'the whole apify profile: poll',
    async call() {
      const result = await profile.poll(runId);
      if (!result.ok) throw new Error(result.failure.message);
    },
    close: () => profile.close(),
  };
}

async function measure(subject: Subject, calls: number): Promise<{ perSecond: number; cpuMs: number }> {
  const loop = async (count: number) => {
    let left = count;
    const one = async () => {
      while (left-- > 0) await subject.call();
    };
    await Promise.all(Array.from({ length: concurrency }, one));
  };
  await loop(Math.ceil(calls / 4));
  const cpu = process.cpuUsage();
  const began = performance.now();
  await loop(calls);
  const seconds = (performance.now() - began) / 1000;
  const { user, system } = process.cpuUsage(cpu);
  return { perSecond: calls / seconds, cpuMs: (user + system) / 1000 / calls };
}

async function main(calls: number): Promise<void> {
  const child = fork(fileURLToPath(import.meta.url), ['serve'], { execArgv: process.execArgv });
  const [port] = (await once(child, 'message')) as [number];
  try {
    for (const form of ['json', 'sse']) {
      const url = new URL(`http://127.0.0.1:${port}/${form}`);
      const subjects = [
        rawSubject(url),
        await sdkSubject(url, false),
        await sdkSubject(url, true),
        profileSubject(url),
      ];
      let limit = 0;
      for (const subject of subjects) {
        const { perSecond, cpuMs } = await measure(subject, calls);
        limit ||= cpuMs;
        const ratio = `${(cpuMs / limit).toFixed(1)} x`;
        const columns = [
          `${perSecond.toFixed(0)}/s`.padStart(8),
          `${cpuMs.toFixed(2)} ms`,
          ratio.padStart(6),
        ];
        console.log(`${form.padEnd(5)}${subject.name.padEnd(44)}${columns.join('  ')}`);
        await subject.close();
      }
    }
  } finally {
    child.kill();
  }
}

// The SDK as it comes leaves a listener a call on one shared signal, and Node warns of each.
process.removeAllListeners('warning');
if (process.argv[2] === 'serve') serve();
else await main(Number(process.argv[2] ?? 8_000));
