import type { OutgoingHttpHeaders } from 'node:http';
import { memberAt, type Message } from '@skep/proxy/message/json-rpc.ts';
import { NAMED_PARAMETER } from '@skep/proxy/message/methods.ts';

const VERSION_PATH = ['params', '_meta', 'io.modelcontextprotocol/protocolVersion'];
const POSTED = { 'Content-Type': 'application/json', Accept: 'application/json, text/event-stream' };

/** True for a message of a revision without sessions, which says so itself (MCP 2026-07-28). */
export function isStateless(message: Message): boolean {
  return typeof memberAt(message.value, VERSION_PATH) === 'string';
}

/** What a POST of the message says of it; `session` for those of revisions with sessions. */
export function headersOf(message: Message, session: OutgoingHttpHeaders): OutgoingHttpHeaders {
  if (!isStateless(message)) return { ...POSTED, ...session };
  const version = { 'MCP-Protocol-Version': inHeader(memberAt(message.value, VERSION_PATH)) };
  if (message.kind === 'response') return { ...POSTED, ...version };
  const named = NAMED_PARAMETER.get(message.method);
  const name = named === undefined ? undefined : memberAt(message.value, ['params', named]);
  return {
    ...POSTED,
    ...version,
    'Mcp-Method': inHeader(message.method),
    ...(typeof name === 'string' ? { 'Mcp-Name': inHeader(name) } : {}),
  };
}

/** Values outside visible ASCII travel as `=?base64?…?=` (MCP 2026-07-28, Streamable HTTP). */
function inHeader(value: unknown): string {
  const text = String(value);
  const isPlain = /^[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?$/u.test(text) && !text.startsWith('=?base64?');
  return isPlain ? text : `=?base64?${Buffer.from(text).toString('base64')}?=`;
}
