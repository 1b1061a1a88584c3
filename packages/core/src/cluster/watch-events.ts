import type { Readable } from 'node:stream';
import { SkepError } from '../errors/skep-error.ts';
import { badStatus } from '../fetch/client.ts';
import { shownUrl, type StreamedAnswer } from '../fetch/requester.ts';
import { isRecord } from '../json/is-record.ts';
import { badAnswer, valueOf } from './ask-cluster.ts';

export interface WatchEvent {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK';
  readonly object: Readonly<Record<string, unknown>>;
}

/** Objects have at most 1.5 MB as etcd holds them. What is larger is read in the same thread that answers callers. */
const MAX_EVENT_BYTES = 3 * 1024 * 1024;

const TYPES: readonly unknown[] = ['ADDED', 'MODIFIED', 'DELETED', 'BOOKMARK'];

/** What an answered watch tells (Kubernetes API concepts: efficient detection of changes). Fails with `fetch/*` and `source/bad-answer`. */
export async function* watchEvents({ body, drop, url }: StreamedAnswer): AsyncGenerator<WatchEvent> {
  try {
    for await (const line of linesOf(body, MAX_EVENT_BYTES)) {
      if (line.trim() === '') continue;
      const event = valueOf(line);
      const { type, object } = isRecord(event) ? event : {};
      if (!isRecord(object)) throw badAnswer(url, 'no event');
      if (type === 'ERROR') throw statusError(url, object);
      if (!isType(type)) throw badAnswer(url, 'an event of an unknown type');
      yield { type, object };
    }
  } catch (error) {
    if (error instanceof SkepError) throw error;
    // A connection that ends in the middle is the same as one that cannot be made.
    const message = `the watch of "${shownUrl(url)}" was cut`;
    throw new SkepError('fetch/unreachable', { message, cause: error });
  } finally {
    drop();
  }
}

function isType(type: unknown): type is WatchEvent['type'] {
  return TYPES.includes(type);
}

/** What a server says in place of an event (a `Status` of the Kubernetes API). */
function statusError(url: URL, { code, message }: Readonly<Record<string, unknown>>): SkepError {
  const said = typeof message === 'string' ? message.slice(0, 300) : undefined;
  return badStatus({ url, status: typeof code === 'number' ? code : 500, said });
}

/** Lines of at most so many bytes; the last one need not be ended. Fails with `fetch/too-large`. */
async function* linesOf(body: Readable, maxBytes: number): AsyncGenerator<string> {
  let parts: Buffer[] = [];
  let held = 0;
  for await (const chunk of body as AsyncIterable<Buffer>) {
    let from = 0;
    for (let end = chunk.indexOf(10); end >= 0; end = chunk.indexOf(10, from)) {
      parts.push(chunk.subarray(from, end));
      held += end - from;
      if (held > maxBytes) throw tooLong(maxBytes);
      yield Buffer.concat(parts).toString('utf8');
      [parts, held, from] = [[], 0, end + 1];
    }
    parts.push(chunk.subarray(from));
    held += chunk.length - from;
    if (held > maxBytes) throw tooLong(maxBytes);
  }
  if (held > 0) yield Buffer.concat(parts).toString('utf8');
}

function tooLong(maxBytes: number): SkepError {
  return new SkepError('fetch/too-large', {
    message: `an event of the watch is larger than ${maxBytes} bytes`,
  });
}
