import { request } from 'undici';

/** A JSON-RPC message as it came; the tests look into it by path. */
export interface WireMessage {
  readonly id?: string | number;
  readonly method?: string;
  readonly params?: Record<string, unknown>;
  // biome-ignore lint/suspicious/noExplicitAny: replies of any shape are what these tests are about
  readonly result?: any;
  readonly error?: { readonly code: number; readonly message: string };
}

export interface HttpReply {
  readonly status: number;
  readonly headers: Record<string, string | string[] | undefined>;
  readonly body: string;
  readonly messages: readonly WireMessage[];
}

export interface RawOptions {
  readonly tools?: string;
  readonly query?: string;
  readonly token?: string | null;
  readonly session?: string | null;
}

/** An MCP client without a library in between: what it sends is what the recording sent. */
export class RawClient {
  readonly #url: string;
  readonly #token: string | null;
  session: string | null;
  #nextId = 1;

  constructor(url: string, options: RawOptions = {}) {
    const query = options.query ?? (options.tools === undefined ? '' : `?tools=${options.tools}`);
    this.#url = `${url}${query}`;
    this.#token = options.token === undefined ? 'secret' : options.token;
    this.session = options.session ?? null;
  }

  static async connect(url: string, options: RawOptions = {}): Promise<RawClient> {
    const client = new RawClient(url, options);
    await client.initialize();
    return client;
  }

  async initialize(id = 0): Promise<HttpReply> {
    const reply = await this.post({
      jsonrpc: '2.0',
      id,
      method: 'initialize',
      params: {
        protocolVersion: '2025-11-25',
        capabilities: {},
        clientInfo: { name: 'worker', version: '1' },
      },
    });
    this.session = String(reply.headers['mcp-session-id']);
    return reply;
  }

  async post(
    message: object | string,
    options: { readonly onMessage?: (message: WireMessage) => void; readonly signal?: AbortSignal } = {},
  ): Promise<HttpReply> {
    const { statusCode, headers, body } = await request(this.#url, {
      method: 'POST',
      headers: this.headers(),
      body: typeof message === 'string' ? message : JSON.stringify(message),
      ...(options.signal === undefined ? {} : { signal: options.signal }),
    });
    let text = '';
    let seen = 0;
    for await (const chunk of body.setEncoding('utf8')) {
      text += chunk;
      const messages = parse(text, String(headers['content-type']));
      for (const fresh of messages.slice(seen)) options.onMessage?.(fresh);
      seen = messages.length;
    }
    return {
      status: statusCode,
      headers,
      body: text,
      messages: parse(text, String(headers['content-type'])),
    };
  }

  headers(): Record<string, string> {
    return {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      ...(this.#token === null ? {} : { authorization: `Bearer ${this.#token}` }),
      ...(this.session === null ? {} : { 'mcp-session-id': this.session }),
    };
  }

  async send(method: 'GET' | 'DELETE'): Promise<number> {
    const { statusCode, body } = await request(this.#url, { method, headers: this.headers() });
    await body.dump();
    return statusCode;
  }

  /** A tools/call; the reply to it. */
  async call(name: string, args?: object, meta?: object): Promise<WireMessage> {
    const id = this.#nextId++;
    const params = {
      name,
      ...(args === undefined ? {} : { arguments: args }),
      ...(meta === undefined ? {} : { _meta: meta }),
    };
    const reply = await this.post({ jsonrpc: '2.0', id, method: 'tools/call', params });
    const answer = reply.messages.find((message) => message.id === id);
    if (answer === undefined) throw new Error(`no answer: HTTP ${reply.status} ${reply.body.slice(0, 300)}`);
    return answer;
  }

  async start(actor: string, input: object, callOptions?: object): Promise<string> {
    const args = { actor, input, waitSecs: 0, ...(callOptions === undefined ? {} : { callOptions }) };
    const answer = await this.call('call-actor', args);
    if (answer.result?.isError !== false) throw new Error(JSON.stringify(answer));
    return String(answer.result.structuredContent.runId);
  }

  async tools(): Promise<WireMessage['result'][]> {
    const reply = await this.post({ jsonrpc: '2.0', id: 'list', method: 'tools/list' });
    return reply.messages[0]?.result.tools;
  }
}

function parse(text: string, contentType: string): WireMessage[] {
  if (contentType.startsWith('application/json')) {
    try {
      return [JSON.parse(text) as WireMessage];
    } catch {
      return [];
    }
  }
  return text
    .split('\n\n')
    .slice(0, -1)
    .flatMap((block) => {
      const data = block.split('\n').find((line) => line.startsWith('data: '));
      try {
        return data === undefined ? [] : [JSON.parse(data.slice(6)) as WireMessage];
      } catch {
        return [];
      }
    });
}

/** Yields to the event loop until it is so. */
export async function until(condition: () => boolean, label: string): Promise<void> {
  const deadline = Date.now() + 5000;
  while (!condition()) {
    if (Date.now() > deadline) throw new Error(`waited in vain until ${label}`);
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
}
