import type { IncomingHttpHeaders } from 'node:http';
import type { Readable } from 'node:stream';
import { StringDecoder } from 'node:string_decoder';
import { findMembers, type Span } from '@skep/core/json/scan.ts';
import { readMessage, type Response } from '../../message/json-rpc.ts';
import { EventReader } from './event-reader.ts';

/** So much of an answer is looked at; what is larger is hardly ever an error. */
const MAX_CHARS = 64 * 1024;
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
  const decoder = new StringDecoder();
  let text = '';
  reply.on('data', (chunk: Buffer) => {
    if (text.length <= MAX_CHARS) text += decoder.write(chunk);
  });
  reply.once('end', () => {
    const answer = text.length > MAX_CHARS ? beginningOf(text) : readMessage(text);
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
    if (unread > MAX_CHARS) reply.off('data', take);
  };
  reply.on('data', take);
}

/**
 * What the first part of a long text says of it: nobody writes kilobytes before the name of the member. Undefined for what is
 * no JSON; whatever it is, it is relayed.
 */
function beginningOf(text: string): Response | undefined {
  const members = membersOf(text);
  if (members === undefined || members.size === 0) return undefined;
  const failed = members.has('error') && !members.has('result');
  const nowhere = { start: 0, end: 0 };
  return { kind: 'response', text, value: failed ? { error: {} } : {}, id: '', idSpan: nowhere, failed };
}

function membersOf(text: string): ReadonlyMap<string, Span> | undefined {
  try {
    return findMembers(text, 0, ENDS, 'last');
  } catch {
    return undefined;
  }
}
