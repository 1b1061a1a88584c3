import type { Message } from '../message/json-rpc.ts';

/** One event as it goes over the wire: what belongs to one stream, and what all its readers may share. */
export interface Frame {
  /** The id line, and an opening event where one is due. */
  readonly lead: string;
  readonly body: string | Buffer;
}

/** Length as far as bounds care: bytes of a shared body, characters else. */
export function lengthOf({ lead, body }: Frame): number {
  return lead.length + body.length;
}

/** The id line of an event. */
export function idLine(id: string): string {
  return `id: ${id}\n`;
}

/** An event without content, so that a client has an id to resume from (MCP 2025-11-25, Streamable HTTP). */
export function emptyEvent(id: string): string {
  return `${idLine(id)}data:\n\n`;
}

/** The event without its id. Its name is spelled out because some clients ignore nameless ones. */
export function bodyOf(text: string): string {
  return `event: message\ndata: ${text}\n\n`;
}

const shared = new WeakMap<Message, Buffer>();

/** As `bodyOf`, once for all the streams that a message goes to. */
export function sharedBodyOf(message: Message): Buffer {
  let body = shared.get(message);
  if (body === undefined) shared.set(message, (body = Buffer.from(bodyOf(message.text))));
  return body;
}
