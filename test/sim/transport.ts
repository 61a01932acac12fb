import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Conditions } from './conditions.js';

/** HTTP as an MCP client sees it: bodies in, answers out as JSON or as a stream of server-sent events. */

export class BodyTooLarge extends Error {}

/** Reads a body whole. @throws BodyTooLarge above `limit` bytes. */
export async function readBody(request: IncomingMessage, limit: number): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > limit) throw new BodyTooLarge();
    chunks.push(chunk);
  }
  return (chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks)).toString('utf8');
}

/** No body is read beyond this, whatever the conditions allow. */
export const hardBodyLimit = 64 * 1024 * 1024;

export function sendJson(response: ServerResponse, status: number, body: string, headers: object = {}): void {
  // Encoded here, in one piece: Node takes far longer over long texts that are not ASCII.
  const bytes = Buffer.from(body);
  response.writeHead(status, {
    'content-type': 'application/json',
    'content-length': bytes.length,
    ...headers,
  });
  response.end(bytes);
}

export function sendHtml(
  response: ServerResponse,
  status: number,
  title: string,
  headers: object = {},
): void {
  const body = `<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<title>Error</title>\n</head>\n<body>\n<pre>${title}</pre>\n</body>\n</html>\n`;
  response.writeHead(status, { 'content-type': 'text/html; charset=utf-8', ...headers });
  response.end(body);
}

/** A JSON-RPC error outside any call, as HTTP errors of an MCP server carry it. */
export function sendRpcError(
  response: ServerResponse,
  status: number,
  code: number,
  message: string,
  headers = {},
) {
  const body = JSON.stringify({ jsonrpc: '2.0', error: { code, message }, id: null });
  sendJson(response, status, body, headers);
}

const event = (json: string) => `event: message\ndata: ${json}\n\n`;

/** The way of one answer to the client. With notifications on the way it is a stream, else as `answers` says. */
export class AnswerWay {
  readonly response: ServerResponse;
  readonly #answers: Conditions['answers'];
  readonly #session: string;

  constructor(response: ServerResponse, answers: Conditions['answers'], session: string) {
    this.response = response;
    this.#answers = answers;
    this.#session = session;
  }

  notify(json: string): void {
    if (this.response.destroyed) return;
    if (!this.response.headersSent) this.#streamHead();
    this.response.write(event(json));
  }

  answer(json: string): void {
    if (this.response.destroyed) return;
    if (this.streams) {
      const bytes = Buffer.from(event(json));
      if (!this.response.headersSent)
        this.#streamHead('text/event-stream', { 'content-length': bytes.length });
      this.response.end(bytes);
    } else sendJson(this.response, 200, json, { 'mcp-session-id': this.#session });
  }

  /** Ends without an answer: the call was cancelled. */
  nothing(): void {
    if (this.response.destroyed) return;
    if (!this.response.headersSent) this.#streamHead();
    this.response.end();
  }

  /** Sends the first half of the answer, then ends quietly or tears the connection down. */
  cut(json: string, quietly: boolean): void {
    const whole = this.streams ? event(json) : json;
    const half = Buffer.from(whole).subarray(0, Math.floor(whole.length / 2));
    if (!this.response.headersSent) {
      if (this.streams || quietly) this.#streamHead(this.streams ? 'text/event-stream' : 'application/json');
      else {
        const length = Buffer.byteLength(whole);
        this.response.writeHead(200, { 'content-type': 'application/json', 'content-length': length });
      }
    }
    if (quietly) this.response.end(half);
    else this.response.write(half, () => this.response.destroy());
  }

  get streams(): boolean {
    return this.#answers === 'sse' || this.response.headersSent;
  }

  #streamHead(contentType = 'text/event-stream', more: object = {}): void {
    this.response.writeHead(200, {
      'content-type': contentType,
      'cache-control': 'no-cache, no-transform',
      'mcp-session-id': this.#session,
      ...more,
    });
  }
}
