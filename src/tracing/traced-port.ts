import type { CallResult, ScrapeServer } from '../mcp/port.js';
import type { SpanAttributes, Tracing } from './tracing.js';

/** The port with a span a call, and the run that is the answer's told to the step's span too. */
export function tracedPort(port: ScrapeServer, tracing: Tracing): ScrapeServer {
  const server = port.name;
  const call = <T>(
    operation: string,
    about: SpanAttributes,
    make: () => Promise<CallResult<T>>,
    answer: (value: T) => SpanAttributes = () => ({}),
  ) =>
    tracing.span(`mcp ${operation}`, { server, ...about }, make, (result) =>
      result.ok
        ? { result: 'ok', ...answer(result.value) }
        : {
            result: result.failure.kind,
            rpcCode: result.failure.rpcCode,
            httpStatus: result.failure.httpStatus,
          },
    );
  return {
    name: server,
    describe: (options) => call('list_tools', {}, () => port.describe(options)),
    async start(request) {
      const run = await call(
        'start',
        { tool: request.tool },
        () => port.start(request),
        ({ runId, status }) => ({ runId, status }),
      );
      if (run.ok) tracing.note({ runId: run.value.runId });
      return run;
    },
    poll: (runId, options) =>
      call(
        'poll',
        { runId },
        () => port.poll(runId, options),
        ({ status }) => ({ status }),
      ),
    readPage: (request, signal) =>
      call(
        'read',
        { offset: request.offset, limit: request.limit },
        () => port.readPage(request, signal),
        ({ lines, bytes }) => ({ items: lines.length, bytes }),
      ),
    readRecord: (storeId, key, signal, about) =>
      call('record', {}, () => port.readRecord(storeId, key, signal, about)),
    abort: (runId, signal, about) =>
      call(
        'abort',
        { runId },
        () => port.abort(runId, signal, about),
        ({ status }) => ({ status }),
      ),
    listRuns: (request, signal) =>
      call('reconcile', { offset: request.offset }, () => port.listRuns(request, signal)),
    close: () => port.close(),
  };
}
