import { isUtf8 } from 'node:buffer';
import type { IncomingMessage } from 'node:http';
import { Readable } from 'node:stream';
import type { Call } from '../../call/call.ts';
import { refuse } from '../../call/refuse.ts';
import { idOf, memberAt, readMessage, type Message } from '../../message/json-rpc.ts';
import { METHODS } from '../../message/methods.ts';

/** The way between a legacy client and a modern server. */
/** Who asks, and what the server is to know of that. */
export type Asker = Pick<Call, 'identity' | 'credentials'>;

export interface CarryOver {
  /** True where the server, which refused a handshake or something within a session, takes no handshake. Never rejects. */
  isNeeded(asker: Asker, refused: 'handshake' | 'message'): Promise<boolean>;
  take(call: Call): Promise<void>;
}

/** What to do when a server refuses a legacy message; true when that was done. */
export type WhenRefused = () => Promise<boolean>;

/** How servers that know no handshake refuse one, and a session (MCP 2026-07-28). */
const CODES: ReadonlySet<unknown> = new Set([-32601, -32602, -32020, -32022]);
const STATUS: ReadonlySet<unknown> = new Set([400, 404]);
/** A refusal is short. */
const MAX_BYTES = 64 * 1024;

/** True for an answer that a modern server may give to what only legacy ones know. */
export function refusesLegacy(message: Message): boolean {
  return (
    message.kind === 'response' && message.failed && CODES.has(memberAt(message.value, ['error', 'code']))
  );
}

/** True where the body of `reply` has to be read to know. */
export function mayRefuse({ statusCode }: IncomingMessage): boolean {
  return STATUS.has(statusCode);
}

/** Whether `reply` is such an answer, and its body as it came. Fails with the error of the stream. */
export async function readRefusal(
  reply: IncomingMessage,
): Promise<{ readonly isRefusal: boolean; readonly body: Readable }> {
  const pieces: Buffer[] = [];
  let size = 0;
  for await (const piece of reply.iterator({ destroyOnReturn: false })) {
    pieces.push(piece as Buffer);
    size += (piece as Buffer).length;
    if (size > MAX_BYTES) break;
  }
  const read = Buffer.concat(pieces);
  const message = size <= MAX_BYTES && isUtf8(read) ? readMessage(read.toString('utf8')) : 'not-json';
  return {
    isRefusal: typeof message !== 'string' && refusesLegacy(message),
    body: Readable.from(followedBy(read, reply)),
  };
}

async function* followedBy(read: Buffer, rest: Readable): AsyncGenerator<Buffer> {
  yield read;
  for await (const piece of rest) yield piece as Buffer;
}

/**
 * What to do when a modern server refuses `call`; undefined for a call that it is not about. Only a handshake is held for it,
 * which is small: any other message has a session that is none.
 */
export function whenRefused(call: Call, carryOver: CarryOver | undefined): WhenRefused | undefined {
  const { incoming, identity, credentials, req, res } = call;
  if (carryOver === undefined || incoming?.era !== 'legacy') return undefined;
  const { message } = incoming;
  const asker = { identity, credentials };
  if (message.kind === 'request' && message.method === METHODS.initialize)
    return async () => {
      const isNeeded = await carryOver.isNeeded(asker, 'handshake');
      if (isNeeded) await carryOver.take(call);
      return isNeeded;
    };
  const id = idOf(message);
  if (req.headers['mcp-session-id'] === undefined) return undefined;
  return async () => {
    const isNeeded = await carryOver.isNeeded(asker, 'message');
    if (isNeeded) refuse(res, 'proxy/session-unknown', { id });
    return isNeeded;
  };
}
