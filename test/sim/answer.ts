import type { Conditions } from './conditions.js';

/** The result of a tool call before it is put on the wire. JSON parts are texts already, so that nothing is done twice. */
export interface ToolAnswer {
  /** absent: the key is not sent (binary records, the run list). */
  readonly isError?: boolean;
  readonly structured?: string;
  /** What `content[0].text` mirrors; for items it lacks `summary` and `nextStep`. */
  readonly mirror?: string;
  /** Further text blocks. */
  readonly texts: readonly string[];
  /** Blocks of other kinds, as JSON. */
  readonly blocks?: readonly string[];
  /** `_meta` as JSON. */
  readonly meta?: string;
  /** `toolTelemetry`, which leaks out of some of the real server's errors. */
  readonly telemetry?: 'SOFT_FAIL' | 'FAILED';
}

/** What a call comes to: an answer, a JSON-RPC error, or nothing because it was cancelled. */
export type Reply =
  | { readonly kind: 'answer'; readonly answer: ToolAnswer }
  | { readonly kind: 'result'; readonly json: string }
  | { readonly kind: 'rpc_error'; readonly code: number; readonly message: string }
  | { readonly kind: 'nothing' };

export const toolError = (texts: readonly string[], telemetry?: 'SOFT_FAIL' | 'FAILED'): Reply => ({
  kind: 'answer',
  answer: telemetry === undefined ? { isError: true, texts } : { isError: true, texts, telemetry },
});

export const rpcError = (code: number, message: string): Reply => ({ kind: 'rpc_error', code, message });

const textBlock = (text: string) => `{"type":"text","text":${JSON.stringify(text)}}`;

/** The `result` of a tools/call as JSON; `strip` is what a proxy in between takes away. */
export function resultJson(answer: ToolAnswer, strip: Conditions['strip']): string {
  const blocks: string[] = [];
  if (answer.mirror !== undefined && strip !== 'json') blocks.push(textBlock(answer.mirror));
  if (answer.blocks !== undefined) blocks.push(...answer.blocks);
  for (const text of answer.texts) blocks.push(textBlock(text));
  let json = `{${answer.meta === undefined ? '' : `"_meta":${answer.meta},`}"content":[${blocks.join(',')}]`;
  if (answer.structured !== undefined && strip === 'none')
    json += `,"structuredContent":${answer.structured}`;
  if (answer.isError !== undefined) json += `,"isError":${answer.isError}`;
  if (answer.telemetry !== undefined) json += `,"toolTelemetry":{"toolStatus":"${answer.telemetry}"}`;
  return `${json}}`;
}

/** The JSON-RPC message for a reply; null: there is none to send. */
export function messageJson(id: string | number, reply: Reply, strip: Conditions['strip']): string | null {
  const head = `{"jsonrpc":"2.0","id":${JSON.stringify(id)},`;
  switch (reply.kind) {
    case 'answer':
      return `${head}"result":${resultJson(reply.answer, strip)}}`;
    case 'result':
      return `${head}"result":${reply.json}}`;
    case 'rpc_error':
      return `${head}"error":${JSON.stringify({ code: reply.code, message: reply.message })}}`;
    case 'nothing':
      return null;
    default:
      return reply satisfies never;
  }
}
