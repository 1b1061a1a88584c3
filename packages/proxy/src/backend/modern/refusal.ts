import { isUtf8 } from 'node:buffer';
import type { IncomingMessage } from 'node:http';
import { Readable } from 'node:stream';
import { memberAt, readMessage, type Message } from '../../message/json-rpc.ts';

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
