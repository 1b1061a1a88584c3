import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { PassThrough } from 'node:stream';
import { text } from 'node:stream/consumers';
import { isRecord } from '@skep/core/json/is-record.ts';
import type { Backend } from '../backend/backend.ts';
import { INITIALIZED } from './scripted-server.ts';

/** What a call has its server say in the place of an answer; text is of bytes (Latin-1), and `$ID` becomes the id. */
export interface Saying {
  readonly pieces: readonly string[];
  /** Of a server over HTTP. */
  readonly type: string;
  /** The connection breaks at the end. */
  readonly isCut: boolean;
}

/** An MCP server that says what its clients have it say (`params.saying`), byte for byte, and echoes all else. */
export interface ObedientServer extends AsyncDisposable {
  readonly backend: Backend;
}

interface Asked {
  readonly id: unknown;
  readonly method: string | undefined;
  readonly saying: Saying | undefined;
  /** To all but what it is to answer otherwise. */
  readonly answer: string;
}

function read(line: string): Asked | undefined {
  let message: unknown;
  try {
    message = JSON.parse(line);
  } catch {
    return undefined;
  }
  if (!isRecord(message)) return undefined;
  const { id, method, params } = message;
  const saying = isRecord(params) && isRecord(params['saying']) ? params['saying'] : undefined;
  const result = method === 'initialize' ? INITIALIZED : { echo: params ?? null };
  return {
    id,
    method: typeof method === 'string' ? method : undefined,
    saying: method === 'tools/call' ? (saying as unknown as Saying | undefined) : undefined,
    answer: JSON.stringify({ jsonrpc: '2.0', id, result }),
  };
}

function bytesOf(piece: string, id: unknown): Buffer {
  return Buffer.from(piece.replaceAll('$ID', JSON.stringify(id)), 'latin1');
}

const isAsked = ({ id, method }: Asked): boolean => id !== undefined && method !== undefined;

export function obedientServer(kind: Backend['kind']): Promise<ObedientServer> {
  return kind === 'stdio' ? Promise.resolve(overPipe()) : overHttp(kind);
}

function overPipe(): ObedientServer {
  const [stdin, stdout] = [new PassThrough(), new PassThrough()];
  let rest = '';
  stdin.setEncoding('utf8').on('data', (chunk: string) => {
    const lines = (rest + chunk).split('\n');
    rest = lines.pop() ?? '';
    for (const asked of lines.map(read)) {
      if (asked === undefined || !isAsked(asked)) continue;
      const { saying, id, answer } = asked;
      for (const piece of saying?.pieces ?? [answer]) stdout.write(bytesOf(piece, id));
      stdout.write('\n');
    }
  });
  const close = (): void => {
    stdin.destroy();
    stdout.destroy();
  };
  return {
    backend: { kind: 'stdio', attach: () => Promise.resolve({ stdin, stdout, close }) },
    [Symbol.asyncDispose]: async () => close(),
  };
}

async function overHttp(kind: 'http' | 'sse'): Promise<ObedientServer> {
  const streams = new Map<string, ServerResponse>();
  const serve = kind === 'sse' ? serveSse : serveHttp;
  const server = createServer((req, res) => void serve(req, res, streams)).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  return {
    backend: { kind, target: new URL(`http://127.0.0.1:${port}`) },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise<void>((resolve) => server.close(() => resolve()));
    },
  };
}

const SSE = { 'Content-Type': 'text/event-stream' };

async function serveHttp(req: IncomingMessage, res: ServerResponse): Promise<void> {
  const asked = read(await text(req).catch(() => ''));
  if (req.method === 'GET') res.writeHead(200, SSE).flushHeaders();
  else if (asked === undefined) res.writeHead(req.method === 'DELETE' ? 204 : 400).end();
  else if (!isAsked(asked)) res.writeHead(202).end();
  else if (asked.saying === undefined) {
    const key = asked.method === 'initialize' ? { 'Mcp-Session-Id': Math.random().toString(36) } : {};
    res.writeHead(200, { 'Content-Type': 'application/json', ...key }).end(asked.answer);
  } else {
    const { saying, id } = asked;
    res.writeHead(200, { 'Content-Type': saying.type });
    for (const piece of saying.pieces) res.write(bytesOf(piece, id));
    if (saying.isCut) res.destroy();
    else res.end();
  }
}

async function serveSse(
  req: IncomingMessage,
  res: ServerResponse,
  streams: Map<string, ServerResponse>,
): Promise<void> {
  const { searchParams } = new URL(req.url ?? '', 'http://x');
  if (req.method === 'GET') {
    const key = Math.random().toString(36);
    streams.set(key, res.writeHead(200, SSE));
    res.once('close', () => streams.delete(key)).write(`event: endpoint\ndata: /messages?sid=${key}\n\n`);
    return;
  }
  const stream = streams.get(searchParams.get('sid') ?? '');
  const asked = read(await text(req).catch(() => ''));
  res.writeHead(stream === undefined ? 404 : 202).end();
  if (stream === undefined || asked === undefined || !isAsked(asked)) return;
  const { saying, id, answer } = asked;
  if (saying === undefined) stream.write(`event: message\ndata: ${answer}\n\n`);
  for (const piece of saying?.pieces ?? []) stream.write(bytesOf(piece, id));
  if (saying?.isCut) stream.destroy();
}
