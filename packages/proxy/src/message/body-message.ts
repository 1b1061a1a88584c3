import { isUtf8 } from 'node:buffer';
import { readMessage, type Message, type Unreadable } from './json-rpc.ts';

/** A body with the message in it. */
export interface ReadBody {
  readonly body: Buffer;
  readonly message: Message | Unreadable;
}

/** Reads the message in a body, unless it was the one that was `read` last. */
export function readBodyOnce(body: Buffer, read: ReadBody | undefined): ReadBody {
  if (read?.body === body) return read;
  return { body, message: isUtf8(body) ? readMessage(body.toString('utf8')) : 'not-json' };
}
