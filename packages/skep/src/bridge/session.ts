import type { OutgoingHttpHeaders } from 'node:http';
import { readMessage, memberAt, type Request } from '@skep/proxy/message/json-rpc.ts';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { exchange, type Reply } from '@skep/proxy/backend/http/exchange.ts';
import { headersOf } from './headers.ts';

const INITIALIZED = '{"jsonrpc":"2.0","method":"notifications/initialized"}';
/** How long the end of a session may hold up the end of the bridge. */
const END_MS = 2_000;

/** What the client began with, and the session that came of it. */
export interface Session {
  readonly initialize: Request;
  readonly headers: OutgoingHttpHeaders;
}

/** The session that an answer to `initialize` opens; undefined where the server keeps none, or refused. */
export function sessionOf(initialize: Request, reply: Reply, answer: string): Session | undefined {
  const read = readMessage(answer);
  if (typeof read === 'string' || read.kind !== 'response' || read.failed) return undefined;
  const version = memberAt(read.value, ['result', 'protocolVersion']);
  const id = reply.header('mcp-session-id');
  return {
    initialize,
    headers: {
      ...(id === undefined ? {} : { 'Mcp-Session-Id': id }),
      ...(typeof version === 'string' && /^[\w.-]{1,40}$/u.test(version)
        ? { 'MCP-Protocol-Version': version }
        : {}),
    },
  };
}

/** Begins anew with a server that has forgotten the session, as the client did; it does not hear of it. */
export async function renew({ initialize }: Session, url: URL, signal: AbortSignal): Promise<Session> {
  const reply = await exchange(url, {
    method: 'POST',
    headers: headersOf(initialize, {}),
    body: initialize.text,
    signal,
  });
  let session: Session | undefined;
  for await (const { data } of reply.messages()) {
    session = sessionOf(initialize, reply, data);
    // Servers need not end a stream with the answer.
    if (session) break;
  }
  if (session === undefined)
    throw new SkepError('bridge/lost', { message: 'the server does not begin a new session' });
  const headers = { 'Content-Type': 'application/json', Accept: 'application/json, text/event-stream' };
  const told = await exchange(url, {
    method: 'POST',
    headers: { ...headers, ...session.headers },
    body: INITIALIZED,
    signal,
  });
  told.drop();
  return session;
}

/** Ends a session that nobody will come back to; one that cannot be ended ends by itself. */
export async function endSession({ headers }: Session, url: URL): Promise<void> {
  if (headers['Mcp-Session-Id'] === undefined) return;
  const signal = AbortSignal.timeout(END_MS);
  await exchange(url, { method: 'DELETE', headers, signal }).then(
    (reply) => reply.drop(),
    () => {},
  );
}
