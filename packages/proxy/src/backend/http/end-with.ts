import type { OutgoingMessage } from 'node:http';

/** Bytes that are copied for the sake of one write. */
const MAX_COPIED_BYTES = 16 * 1024;

/** Ends a message with its whole body: Node writes a head and a text at once, and a head and bytes as two pieces. */
export function endWith(
  message: OutgoingMessage,
  body: Buffer | string | undefined,
  done?: (error?: unknown) => void,
): void {
  if (Buffer.isBuffer(body) && body.length <= MAX_COPIED_BYTES)
    message.end(body.toString('latin1'), 'latin1', done);
  else message.end(body, done);
}
