import { findPath } from '@skep/core/json/scan.ts';
import { REQUEST_META, withMeta } from '../message/envelope.ts';
import type { Message } from '../message/json-rpc.ts';
import type { Call } from './call.ts';

const TRACE: ReadonlySet<string> = new Set(['traceparent', 'tracestate']);

/** The trace goes on with the request, which has no headers on a pipe (MCP 2026-07-28, trace context in `_meta`). */
export function tellTrace(call: Call): void {
  const { incoming, trace } = call;
  if (trace === undefined || incoming === undefined) return;
  const { message } = incoming;
  if (message.kind === 'request' || (message.kind === 'notification' && namesTrace(message)))
    call.incoming = {
      ...incoming,
      message: withMeta(message, trace, new Set([...TRACE, ...Object.keys(trace)])),
    };
}

/** The body for a server that is told in headers: as it came, unless its client named a trace in it. */
export function bodyInTrace(call: Call): Promise<Buffer> {
  const { incoming, trace } = call;
  if (trace === undefined || incoming === undefined || !namesTrace(incoming.message)) return call.readBody();
  tellTrace(call);
  return Promise.resolve(Buffer.from(call.incoming?.message.text ?? ''));
}

function namesTrace({ text }: Message): boolean {
  for (const name of TRACE) if (findPath(text, [...REQUEST_META, name], 'last') !== undefined) return true;
  return false;
}
