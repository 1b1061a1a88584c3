import type { IncomingHttpHeaders } from 'node:http';
import type { Readable } from 'node:stream';
import { StringDecoder } from 'node:string_decoder';
import { findMembers, isWhole, type Span } from '@skep/core/json/scan.ts';
import { readMessage, type JsonObject, type Response } from '../../message/json-rpc.ts';
import { EventReader } from './event-reader.ts';

/** So much of an answer is looked at; what is larger is hardly ever an error. */
const MAX_BYTES = 64 * 1024;
const ENDS = new Set(['result', 'error']);

/**
 * Reads along while the answer to a POST is relayed, and calls `hear` with the response in it, as soon as it is known and
 * once at the most. Of more than 64 KiB it learns no more than whether it is an error; packed bytes are not looked into.
 */
export function readAlong(
  reply: Readable,
  { 'content-type': type = '', 'content-encoding': coding = 'identity' }: IncomingHttpHeaders,
  hear: (answer: Response) => void,
): void {
  if (coding !== 'identity') return;
  if (/^application\/json\b/iu.test(type)) readJson(reply, hear);
  else if (/^text\/event-stream\b/iu.test(type)) readEvents(reply, hear);
}

function readJson(reply: Readable, hear: (answer: Response) => void): void {
  const pieces: Buffer[] = [];
  let size = 0;
  reply.on('data', (piece: Buffer) => {
    if (size <= MAX_BYTES) pieces.push(piece);
    size += piece.length;
  });
  reply.on('end', () => {
    const [first = Buffer.alloc(0), ...more] = pieces;
    const text = (more.length === 0 ? first : Buffer.concat(pieces)).toString('utf8');
    const answer = size > MAX_BYTES ? beginningOf(text) : (plainAnswer(text) ?? readMessage(text));
    if (typeof answer === 'object' && answer.kind === 'response') hear(answer);
  });
}

function readEvents(reply: Readable, hear: (answer: Response) => void): void {
  const decoder = new StringDecoder();
  const reader = new EventReader();
  let unread = 0;
  const take = (chunk: Buffer): void => {
    const events = reader.push(decoder.write(chunk));
    unread = events.length === 0 ? unread + chunk.length : 0;
    for (const { data } of events) {
      const message = data === '' ? 'not-json' : readMessage(data);
      if (typeof message === 'string' || message.kind !== 'response') continue;
      reply.off('data', take);
      hear(message);
      return;
    }
    // An event may be as large as a server likes, and is kept until its end.
    if (unread > MAX_BYTES) reply.off('data', take);
  };
  reply.on('data', take);
}

const NOWHERE = { start: 0, end: 0 };

/**
 * Most answers hold nothing that is called an error on any level, and no escapes: that they are whole is seen without reading them.
 * Whoever asks for the value has it read.
 */
function plainAnswer(text: string): Response | undefined {
  if (!PLAIN.test(text) || !text.includes('"result"')) return undefined;
  if (text.includes('rror') || text.includes('\\') || !isWhole(text)) return undefined;
  return new PlainAnswer(text);
}

/** A class, because V8 makes an object with a getter of its own as slowly as it parses a short answer. */
class PlainAnswer implements Response {
  readonly kind = 'response';
  readonly id = '';
  readonly idSpan = NOWHERE;
  readonly failed = false;
  readonly text: string;
  #value: JsonObject | undefined;

  constructor(text: string) {
    this.text = text;
  }

  get value(): JsonObject {
    return (this.#value ??= valueOf(this.text));
  }
}

const PLAIN = /^\{\s*"(?:jsonrpc|id|result)"\s*:/u;

function valueOf(text: string): JsonObject {
  const message = readMessage(text);
  return typeof message === 'object' ? message.value : {};
}

/**
 * What the first part of a long text says of it: nobody writes kilobytes before the name of the member. Undefined for what is
 * no JSON; whatever it is, it is relayed.
 */
function beginningOf(text: string): Response | undefined {
  const members = membersOf(text);
  if (members === undefined || members.size === 0) return undefined;
  const failed = members.has('error') && !members.has('result');
  return { kind: 'response', text, value: failed ? { error: {} } : {}, id: '', idSpan: NOWHERE, failed };
}

function membersOf(text: string): ReadonlyMap<string, Span> | undefined {
  try {
    return findMembers(text, 0, ENDS, 'last');
  } catch {
    return undefined;
  }
}
