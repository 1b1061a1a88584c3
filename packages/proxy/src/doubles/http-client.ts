import { request, type IncomingHttpHeaders, type IncomingMessage, type OutgoingHttpHeaders } from 'node:http';

export interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
}

export interface SseEvent {
  readonly id: string | undefined;
  readonly name: string | undefined;
  readonly data: string;
}

/** An open event stream: read events one by one, in order. */
export interface Stream {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  /** The next event; undefined when the stream has ended. */
  readonly next: () => Promise<SseEvent | undefined>;
  /** Cuts the connection. */
  readonly abort: () => void;
}

export interface Ask {
  readonly method?: string;
  readonly headers?: OutgoingHttpHeaders;
  readonly body?: string | Buffer;
  /** Ends the exchange, at whatever point it is. */
  readonly signal?: AbortSignal;
}

const MCP_HEADERS = { 'Content-Type': 'application/json', Accept: 'application/json, text/event-stream' };

function open(url: string, ask: Ask): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const outgoing = request(url, {
      method: ask.method ?? 'POST',
      headers: ask.headers ?? MCP_HEADERS,
      agent: false,
      ...(ask.signal && { signal: ask.signal }),
    });
    outgoing.once('response', resolve);
    outgoing.once('error', reject);
    outgoing.end(ask.body);
  });
}

/** One HTTP exchange, read to its end. */
export async function ask(url: string, options: Ask): Promise<Answer> {
  const reply = await open(url, options);
  const chunks: Buffer[] = [];
  for await (const chunk of reply) chunks.push(chunk);
  return {
    status: reply.statusCode ?? 0,
    headers: reply.headers,
    text: Buffer.concat(chunks).toString('utf8'),
  };
}

/** Posts one message the way MCP clients do. */
export function postJson(url: string, message: unknown, headers: OutgoingHttpHeaders = {}): Promise<Answer> {
  return ask(url, {
    body: typeof message === 'string' ? message : JSON.stringify(message),
    headers: { ...MCP_HEADERS, ...headers },
  });
}

/** The events of a complete or partial stream, without comments. */
export function eventsIn(text: string): readonly SseEvent[] {
  return text
    .split('\n\n')
    .filter((block) => block !== '' && !block.startsWith(':'))
    .map((block) => {
      const fields = new Map(
        block.split('\n').map((line): [string, string] => {
          const colon = line.indexOf(':');
          return [line.slice(0, colon), line.slice(colon + 1).replace(/^ /u, '')];
        }),
      );
      return { id: fields.get('id'), name: fields.get('event'), data: fields.get('data') ?? '' };
    });
}

/** The messages of an answer, whether it came as JSON or as events. */
export function messagesIn(answer: Answer): readonly unknown[] {
  if (answer.headers['content-type']?.startsWith('text/event-stream') !== true)
    return [JSON.parse(answer.text)];
  return eventsIn(answer.text)
    .filter(({ data }) => data !== '')
    .map(({ data }) => JSON.parse(data));
}

/** Opens an event stream and leaves it open. */
export async function openStream(url: string, options: Ask): Promise<Stream> {
  const reply = await open(url, options);
  let text = '';
  let ended = false;
  let wake = (): void => {};
  const more = (): Promise<void> => new Promise((resolve) => (wake = resolve));
  reply.setEncoding('utf8').on('data', (chunk: string) => {
    text += chunk;
    wake();
  });
  for (const end of ['end', 'error', 'close']) {
    reply.on(end, () => {
      ended = true;
      wake();
    });
  }
  const next = async (): Promise<SseEvent | undefined> => {
    for (;;) {
      const end = text.indexOf('\n\n');
      if (end === -1 && ended) return undefined;
      if (end === -1) await more();
      else {
        const [event] = eventsIn(text.slice(0, end + 2));
        text = text.slice(end + 2);
        if (event !== undefined) return event;
      }
    }
  };
  return { status: reply.statusCode ?? 0, headers: reply.headers, next, abort: () => void reply.destroy() };
}
