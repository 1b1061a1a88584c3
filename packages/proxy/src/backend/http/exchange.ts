import { once } from 'node:events';
import { addAbortSignal } from 'node:stream';
import { request, type IncomingMessage, type OutgoingHttpHeaders } from 'node:http';
import type { Code } from '@skep/core/errors/codes.ts';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { MAX_LINE_BYTES } from '../stdio/line-reader.ts';
import { EventReader, type ServerEvent } from './event-reader.ts';
import { MAX_READ, refusalText } from './refusal-text.ts';
import { isStream, leave, type Upstream } from './upstream.ts';

export interface Exchange {
  readonly method: 'POST' | 'GET' | 'DELETE';
  readonly headers?: OutgoingHttpHeaders;
  readonly body?: string;
  readonly signal: AbortSignal;
  /** The connections of a server that is asked more than once; a connection of its own by default. */
  readonly via?: Upstream;
}

/** An answer whose head has come. */
export interface Reply {
  readonly status: number;
  header(name: string): string | undefined;
  /** The messages of the body, whether it is one or a stream; whoever takes them slowly is written to slowly. */
  messages(): AsyncGenerator<ServerEvent, void, undefined>;
  /** Leaves the body. */
  drop(): void;
  /** What it is where no answer was in it, and how that is told; once the body was read. */
  failure(): readonly [Code, string?];
  /** Reads what a refusal begins with, in a second at most, and leaves the rest; for a body in which no answer is due. Never rejects. */
  readRefusal(): Promise<void>;
}

/** Redirects to the same host are followed. */
const ELSEWHERE = 'the server sends its clients to another address; give that one in its place';
/** The server will not do this for whoever asks (RFC 9110 §15.5.4). */
const FORBIDDEN = 403;
const REFUSAL_WITHIN_MS = 1_000;
/** What was sent that is no secret of anybody. */
const PLAIN = /^(?:accept|content-type|last-event-id|mcp-.*)$/iu;

/**
 * One request of MCP over HTTP. Waits for the head as long as it takes. Fails with the system's own error, or as
 * `Upstream.send` does.
 */
export async function exchange(url: URL, { via, ...asked }: Exchange): Promise<Reply> {
  const incoming =
    via === undefined
      ? await askAlone(url, asked)
      : await via.send(url, { headers: {}, ...asked, redirects: 'follow' }).reply;
  // What fails later is told by whoever reads the body.
  incoming.on('error', () => {});
  const { statusCode: status = 0 } = incoming;
  let first = '';
  const secrets = (): readonly string[] => [
    ...Object.entries(asked.headers ?? {}).flatMap(([name, value]) =>
      PLAIN.test(name) ? [] : [String(value)],
    ),
    ...(via?.shown ?? []),
  ];
  return {
    status,
    header(name) {
      const value = incoming.headers[name];
      return Array.isArray(value) ? value[0] : value;
    },
    async *messages() {
      for await (const event of messagesOf(incoming)) {
        if (status === FORBIDDEN) first ||= event.data;
        yield event;
      }
    },
    failure() {
      if (status === FORBIDDEN) return ['proxy/server-refused', refusalText(first, secrets())];
      if (status >= 300 && status < 400) return ['proxy/bad-gateway', ELSEWHERE];
      return [status < 400 ? 'proxy/backend-lost' : 'proxy/bad-gateway'];
    },
    async readRefusal() {
      if (status !== FORBIDDEN || isStream(incoming)) {
        leave(incoming);
        return;
      }
      try {
        const late = AbortSignal.timeout(REFUSAL_WITHIN_MS);
        for await (const piece of addAbortSignal(late, incoming.setEncoding('utf8'))) {
          first += String(piece);
          if (first.length > MAX_READ) break;
        }
      } catch {
        // What it had said until then is told.
      }
    },
    drop: () => leave(incoming),
  };
}

/** On a connection of its own. */
async function askAlone(
  url: URL,
  { method, headers, body, signal }: Omit<Exchange, 'via'>,
): Promise<IncomingMessage> {
  const outgoing = request(url, {
    method,
    headers: { ...headers, Connection: 'close' },
    agent: false,
    signal,
  });
  // Nobody asked for another protocol, so there is no answer in it; without this, Node would tell nobody.
  outgoing.once('upgrade', (_reply, socket) => {
    socket.destroy();
    outgoing.destroy(
      new SkepError('proxy/bad-gateway', { message: 'the server answered with another protocol' }),
    );
  });
  outgoing.end(body);
  const [incoming] = (await once(outgoing, 'response')) as [IncomingMessage];
  outgoing.on('error', () => {});
  return incoming;
}

/** So much white space at most may stand before what tells what a body is. */
const MAX_LEADING = 1_024;

/** What a body begins with tells what it is where its type does not, or is wrong. */
async function* messagesOf(incoming: IncomingMessage): AsyncGenerator<ServerEvent, void, undefined> {
  incoming.setEncoding('utf8');
  let reader: EventReader | undefined;
  let isKnown = false;
  let text = '';
  for await (const piece of incoming) {
    if (reader !== undefined) {
      yield* reader.push(String(piece));
      continue;
    }
    text += String(piece);
    if (!isKnown) {
      const start = text.slice(0, MAX_LEADING);
      isKnown = start.length === MAX_LEADING || /\S/u.test(start);
      if (isKnown && isEventStream(start, incoming)) {
        reader = new EventReader();
        yield* reader.push(text.replace(/^\uFEFF/u, ''));
        text = '';
      }
    }
    if (text.length > MAX_LINE_BYTES) {
      throw new SkepError('bridge/unreadable', { message: 'the server sent a message that is too large' });
    }
  }
  if (text !== '') yield { id: undefined, data: text.replace(/^\uFEFF/u, '') };
}

function isEventStream(start: string, incoming: IncomingMessage): boolean {
  if (/^\s*[[{]/u.test(start)) return false;
  return isStream(incoming) || /^\uFEFF?(?:event|data|id|retry)?:/u.test(start);
}
