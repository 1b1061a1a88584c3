import { once } from 'node:events';
import http from 'node:http';

export interface Sent {
  readonly method?: string;
  /** The request target, sent as it is: nothing is normalised. */
  readonly target: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** A text or bytes are sent as they are, everything else as JSON. */
  readonly body?: unknown;
}

export interface Received {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
  readonly text: string;
}

/** One request over a connection of its own. Fails when the connection ends without an answer. */
export async function send(
  base: string,
  { method = 'GET', target, headers = {}, body }: Sent,
): Promise<Received> {
  const { hostname, port } = new URL(base);
  const content = contentOf(body);
  const type =
    content === undefined || 'content-type' in headers ? {} : { 'content-type': 'application/json' };
  const length = content === undefined ? {} : { 'content-length': String(Buffer.byteLength(content)) };
  const request = http.request({
    hostname,
    port,
    method,
    path: target,
    headers: { ...type, ...length, ...headers },
    agent: false,
  });
  const answered = once(request, 'response') as Promise<[http.IncomingMessage]>;
  // A server that refuses a body by its announced length answers before it has come.
  if (content === undefined && 'content-length' in headers) request.flushHeaders();
  else request.end(content);
  const [response] = await answered;
  response.setEncoding('utf8');
  let text = '';
  for await (const piece of response) text += piece;
  request.destroy();
  return { status: response.statusCode ?? 0, headers: response.headers, text };
}

function contentOf(body: unknown): string | Buffer | undefined {
  return body === undefined || typeof body === 'string' || Buffer.isBuffer(body)
    ? body
    : JSON.stringify(body);
}
