import { isUtf8 } from 'node:buffer';
import { readMessage, type Message, type Unreadable } from './json-rpc.ts';

const known = new WeakMap<Buffer, Message | Unreadable>();

/** The message in a body. Steps that ask for the message in the same bytes share one reading. */
export function messageIn(body: Buffer): Message | Unreadable {
  let message = known.get(body);
  if (message === undefined) {
    message = isUtf8(body) ? readMessage(body.toString('utf8')) : 'not-json';
    known.set(body, message);
  }
  return message;
}
