import { once } from 'node:events';
import { request, type IncomingMessage, type OutgoingHttpHeaders } from 'node:http';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { MAX_LINE_BYTES } from '../stdio/line-reader.ts';
import { EventReader, type ServerEvent } from './event-reader.ts';
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
}

/**
 * One request of MCP over HTTP. Waits for the head as long as it takes. Fails with the system's own error, or as
 * `Upstream.send` does.
 */
export async function exchange(url: URL, { via, ...asked }: Exchange): Promise<Reply> {
  const incoming =
    via === undefined ? await askAlone(url, asked) : await via.send(url, { headers: {}, ...asked }).reply;
  // What fails later is told by whoever reads the body.
  incoming.on('error', () => {});
  return {
    status: incoming.statusCode ?? 0,
    header(name) {
      const value = incoming.headers[name];
      return Array.isArray(value) ? value[0] : value;
    },
    messages: () => messagesOf(incoming),
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

async function* messagesOf(incoming: IncomingMessage): AsyncGenerator<ServerEvent, void, undefined> {
  incoming.setEncoding('utf8');
  if (isStream(incoming)) {
    const reader = new EventReader();
    for await (const piece of incoming) yield* reader.push(String(piece));
    return;
  }
  let text = '';
  for await (const piece of incoming) {
    text += String(piece);
    if (text.length > MAX_LINE_BYTES) {
      throw new SkepError('bridge/unreadable', { message: 'the server sent a message that is too large' });
    }
  }
  if (text !== '') yield { id: undefined, data: text };
}
