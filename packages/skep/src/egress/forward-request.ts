import {
  type IncomingMessage,
  type OutgoingHttpHeaders,
  request,
  type ServerResponse,
  STATUS_CODES,
} from 'node:http';
import type { Socket } from 'node:net';
import { pipeline } from 'node:stream';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { joinSockets } from './join-sockets.ts';

/** Where a request goes: over a connection of its own, with a target and `Host` that were judged. */
export interface Onward {
  readonly socket: Socket;
  /** In origin form (RFC 9112 §3.2.1). */
  readonly path: string;
  readonly host: string;
}

/** Meant for one hop only (RFC 9110 §7.6.1), besides what `Connection` names, and what is answered here. */
const HOP_BY_HOP = new Set([
  'connection',
  'expect',
  'http2-settings',
  'keep-alive',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
]);

/**
 * Sends a request on and its answer back, both as they come. Where the server gives none that can be passed on, the
 * answer is 502; where it breaks off, so does the answer.
 */
export function forwardRequest(req: IncomingMessage, res: ServerResponse, onward: Onward): void {
  const upstream = requestOf(req, onward, bodyHeaders(req));
  const failed = () => {
    upstream.destroy();
    // An answer that has begun ends or breaks with the one that is being read.
    if (!res.headersSent && !res.destroyed)
      answerText(res, 502, 'the server gave no answer that can be passed on');
  };
  upstream.on('error', failed);
  upstream.once('upgrade', (_reply, socket) => {
    socket.destroy();
    failed();
  });
  upstream.once('response', (reply) => {
    try {
      const { statusCode = 0 } = reply;
      if (statusCode < 200) throw new SkepError('fetch/bad-status');
      res.sendDate = false;
      res.writeHead(statusCode, endToEnd(reply));
    } catch {
      // A status or header that may not be sent on.
      failed();
      return;
    }
    res.flushHeaders();
    pipeline(reply, res, () => void upstream.destroy());
  });
  res.once('close', () => {
    upstream.destroy();
    // What a server that answered early did not want.
    req.unpipe(upstream).resume();
  });
  req.pipe(upstream);
}

/**
 * Sends a request on that asks for another protocol (RFC 9110 §7.8), and joins the two connections where the server
 * agrees. Any other answer is sent back and ends the connection.
 */
export function forwardUpgrade(req: IncomingMessage, client: Socket, head: Buffer, onward: Onward): void {
  const { upgrade = '' } = req.headers;
  const upstream = requestOf(req, onward, { connection: 'Upgrade', upgrade });
  client.once('close', () => void upstream.destroy());
  upstream.on('error', () => void client.destroy());
  upstream.once('upgrade', (reply, server, first) => {
    const { connection, upgrade: agreed } = reply.headers;
    client.write(headOf(101, { ...endToEnd(reply), connection, upgrade: agreed }));
    client.write(first);
    server.write(head);
    joinSockets(client, server);
  });
  upstream.once('response', (reply) => {
    client.write(headOf(reply.statusCode ?? 502, { ...endToEnd(reply), connection: 'close' }));
    pipeline(reply, client, () => void upstream.destroy());
  });
  upstream.end();
}

/** True where a request that asks for another protocol has a body too: nobody can say where it ends. */
export function hasBody({ headers }: IncomingMessage): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) !== 0;
}

export function answerText(res: ServerResponse, status: number, text: string): void {
  // A body that is still coming is not waited for.
  res.shouldKeepAlive &&= res.req.complete;
  res.writeHead(status, { ...TEXT, 'content-length': Buffer.byteLength(text) + 1 }).end(`${text}\n`);
}

/** An answer on a connection that HTTP has no hold of any more; it ends there. */
export function answerSocket(socket: Socket, status: number, text: string): void {
  const headers = { ...TEXT, 'content-length': Buffer.byteLength(text) + 1, connection: 'close' };
  socket.end(`${headOf(status, headers)}${text}\n`);
}

const TEXT = { 'content-type': 'text/plain; charset=utf-8' };

/** A status line and headers (RFC 9112 §4), with values that were parsed before and so hold no line end. */
function headOf(status: number, headers: OutgoingHttpHeaders): string {
  const lines = Object.entries(headers).flatMap(([name, value]) =>
    (Array.isArray(value) ? value : [value])
      .filter((one) => one !== undefined)
      .map((one) => `${name}: ${one}\r\n`),
  );
  return `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}\r\n${lines.join('')}\r\n`;
}

function requestOf(req: IncomingMessage, { socket, path, host }: Onward, more: OutgoingHttpHeaders) {
  return request({
    method: req.method,
    path,
    headers: { ...endToEnd(req), ...more, host },
    setHost: false,
    // A connection of its own: nothing that one request leaves behind can be read as part of another.
    createConnection: () => socket,
  });
}

/** What says where a body ends: without it the rest would be read as another request, which nobody judged. */
const FRAMING = 'content-length';

/** The body's length as the client gave it, since the two ways must never be mixed (RFC 9112 §6.3). */
function bodyHeaders({ headers }: IncomingMessage): OutgoingHttpHeaders {
  return headers['transfer-encoding'] === undefined ? {} : { 'transfer-encoding': 'chunked' };
}

function endToEnd({ headersDistinct, headers }: IncomingMessage): OutgoingHttpHeaders {
  const named = new Set((headers.connection ?? '').split(',').map((name) => name.trim().toLowerCase()));
  const entries = Object.entries(headersDistinct).filter(
    ([name, value]) =>
      value !== undefined &&
      !HOP_BY_HOP.has(name) &&
      !name.startsWith('proxy-') &&
      (name === FRAMING || !named.has(name)),
  );
  return Object.fromEntries(entries.map(([name, value]) => [name, value?.length === 1 ? value[0] : value]));
}
