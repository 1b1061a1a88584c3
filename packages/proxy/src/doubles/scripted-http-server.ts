import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import {
  createServer,
  type IncomingMessage,
  type RequestListener,
  type Server,
  type ServerResponse,
} from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { text } from 'node:stream/consumers';
import { ENDPOINT_PATHS, type HttpBackend } from '../backend/backend.ts';
import type { Authority } from './own-authority.ts';
import { Inbox, INITIALIZED, type Received, type Script, type ScriptedServer } from './scripted-server.ts';

/** As a scripted server over a pipe, for servers that speak HTTP; what it says by itself is said in every session. */
export interface ScriptedHttpServer
  extends Pick<ScriptedServer, 'received' | 'heard' | 'say'>, AsyncDisposable {
  readonly backend: HttpBackend;
  /** Sessions that are open. */
  readonly sessions: number;
  /** Headers of the requests so far. */
  readonly headers: readonly IncomingMessage['headers'][];
  /** Forgets all sessions, as when the process was started anew. */
  readonly forget: () => void;
}

/** What a session says by itself, or before an answer, and where. */
interface Session {
  readonly calls: Map<unknown, ServerResponse>;
  stream: ServerResponse | undefined;
}

/**
 * An MCP server over HTTP, which answers like the one over a pipe (scripted-server.ts); with an authority one elsewhere, over
 * TLS.
 */
export async function scriptedHttpServer(
  kind: HttpBackend['kind'],
  script: Script = () => undefined,
  tls?: Authority,
): Promise<ScriptedHttpServer> {
  const inbox = new Inbox();
  const sessions = new Map<string, Session>();
  const headers: IncomingMessage['headers'][] = [];
  const answer = kind === 'sse' ? overSse : overHttp;
  const serve: RequestListener = (req, res) => {
    headers.push(req.headers);
    const take = (line: string, session: Session): void => {
      const message = inbox.put(line);
      const say = (said: string): void => sayIn(session, said);
      const reply = ({ id }: Received, result: unknown): void =>
        say(JSON.stringify({ jsonrpc: '2.0', id, result }));
      if (script(message, { say, reply, heard: (matches) => inbox.first(matches) }) === 'handled') return;
      if (message.id === undefined || message.method === undefined) return;
      reply(message, message.method === 'initialize' ? INITIALIZED : { echo: message.params ?? null });
    };
    void answer({ req, res, sessions, take });
  };
  const server = tls === undefined ? createServer(serve) : createTlsServer(tls, serve);
  const port = await listening(server);
  return {
    backend:
      tls === undefined
        ? { kind, target: new URL(`http://127.0.0.1:${port}`) }
        : {
            kind,
            target: new URL(`https://localhost:${port}${ENDPOINT_PATHS[kind]}`),
            remote: { allowPrivate: true, ca: [tls.cert], headers: {} },
          },
    received: inbox.messages,
    headers,
    heard: (matches) => inbox.first(matches),
    say: (line) => {
      for (const session of sessions.values()) sayIn(session, line);
    },
    get sessions() {
      return sessions.size;
    },
    forget() {
      sessions.clear();
      server.closeAllConnections();
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise<void>((resolve) => server.close(() => resolve()));
    },
  };
}

async function listening(server: Server): Promise<number> {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  return typeof address === 'object' && address !== null ? address.port : 0;
}

interface Exchange {
  readonly req: IncomingMessage;
  readonly res: ServerResponse;
  readonly sessions: Map<string, Session>;
  readonly take: (line: string, session: Session) => void;
}

const SSE = { 'Content-Type': 'text/event-stream' };
const event = (data: string): string => `event: message\ndata: ${data}\n\n`;

/** What servers of the modern revision answer with this status. */
const REFUSALS: ReadonlySet<unknown> = new Set([-32020, -32021, -32022, -32602]);

/** An answer on the POST that it is for, all else on the latest that is open, or on the session's own stream. */
function sayIn({ calls, stream }: Session, said: string): void {
  const { id, method, error }: Received = JSON.parse(said);
  const isAnswer = method === undefined;
  const status = REFUSALS.has(Object(error).code) ? 400 : 200;
  const call = isAnswer ? calls.get(id) : [...calls.values()].at(-1);
  if (isAnswer) calls.delete(id);
  if (call === undefined) stream?.write(event(said));
  else if (isAnswer && !call.headersSent)
    call.writeHead(status, { 'Content-Type': 'application/json' }).end(said);
  else if (isAnswer) call.end(event(said));
  else {
    if (!call.headersSent) call.writeHead(200, SSE);
    call.write(event(said));
  }
}

async function overHttp({ req, res, sessions, take }: Exchange): Promise<void> {
  const line = await text(req);
  const message: Received = line === '' ? {} : JSON.parse(line);
  const named = String(req.headers['mcp-session-id']);
  const isModern = req.headers['mcp-protocol-version'] === '2026-07-28';
  const key = isModern || message.method === 'initialize' ? randomUUID() : named;
  if (key !== named) sessions.set(key, { calls: new Map(), stream: undefined });
  const session = sessions.get(key);
  if (session === undefined) {
    res.writeHead(404).end();
  } else if (req.method === 'DELETE') {
    sessions.delete(key);
    res.writeHead(204).end();
  } else if (req.method === 'GET' && session.stream?.destroyed === false) {
    // As most servers, it takes one.
    res.writeHead(409).end();
  } else if (req.method === 'GET') {
    session.stream = res.writeHead(200, SSE);
    res.flushHeaders();
  } else {
    if (isModern) res.once('close', () => sessions.delete(key));
    else res.setHeader('Mcp-Session-Id', key);
    if (message.id === undefined || message.method === undefined) res.writeHead(202).end();
    else session.calls.set(message.id, res);
    take(line, session);
  }
}

async function overSse({ req, res, sessions, take }: Exchange): Promise<void> {
  const { pathname, searchParams } = new URL(req.url ?? '', 'http://x');
  if (req.method === 'GET' && pathname === '/sse') {
    const key = randomUUID();
    const stream = res.writeHead(200, SSE);
    sessions.set(key, { calls: new Map(), stream });
    res.once('close', () => sessions.delete(key));
    stream.write(`event: endpoint\ndata: /messages?sid=${key}\n\n`);
    return;
  }
  const session = sessions.get(searchParams.get('sid') ?? '');
  const line = await text(req);
  res.writeHead(session === undefined ? 404 : 202).end();
  if (session !== undefined) take(line, session);
}
