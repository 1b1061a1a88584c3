import { createHash, randomBytes } from 'node:crypto';
import { request as httpRequest, type IncomingMessage } from 'node:http';
import { request as httpsRequest } from 'node:https';
import type { Duplex } from 'node:stream';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { badStatus, saidIn } from '@skep/core/fetch/client.ts';
import { shownUrl } from '@skep/core/fetch/requester.ts';
import type { ClusterAccess } from '@skep/core/cluster/cluster-access.ts';

/** The client's side of a WebSocket (RFC 6455) that carries binary messages. */
export interface WebSocketLink {
  /** Calls back when the connection has taken the message. */
  readonly send: (message: Buffer, done?: (error?: Error | null) => void) => void;
  /** Each message; while `pause`d none. Set before anything arrives. */
  readonly onMessage: (take: (message: Buffer) => void) => void;
  readonly onClose: (tell: () => void) => void;
  readonly pause: () => void;
  readonly resume: () => void;
  readonly close: () => void;
}

const CONNECT_MS = 15_000;
const PING_MS = 20_000;
/** A side that does not answer a ping for so long is gone. */
const SILENCE_MS = 60_000;
const MAX_MESSAGE_BYTES = 4 * 1024 * 1024;
const GUID = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11';

/** Where and as whom a WebSocket is opened, and what is spoken in it. */
export interface Dial {
  readonly url: URL;
  readonly access: Pick<ClusterAccess, 'ca' | 'verify' | 'shown'>;
  readonly protocol: string;
  readonly signal: AbortSignal;
}

/** Fails with `fetch/bad-status` where the server refuses, `fetch/unreachable`, `source/bad-answer`, or the signal's reason. */
export async function openWebSocket({ url, access, protocol, signal }: Dial): Promise<WebSocketLink> {
  const key = randomBytes(16).toString('base64');
  const { headers, identity = {} } = access.shown;
  const said = {
    ...headers,
    connection: 'Upgrade',
    upgrade: 'websocket',
    'sec-websocket-version': '13',
    'sec-websocket-key': key,
    'sec-websocket-protocol': protocol,
  };
  const ca = access.ca === undefined ? {} : { ca: access.ca };
  const tls = { ...identity, ...ca, rejectUnauthorized: access.verify, minVersion: 'TLSv1.2' as const };
  const inTime = AbortSignal.any([signal, AbortSignal.timeout(CONNECT_MS)]);
  const { socket, head, answer } = await upgraded(
    url,
    { headers: said, agent: false, signal: inTime, ...tls },
    signal,
  );
  const accept = createHash('sha1')
    .update(key + GUID)
    .digest('base64');
  const { 'sec-websocket-accept': proof, 'sec-websocket-protocol': spoken } = answer.headers;
  if (proof === accept && spoken === protocol) return link(socket, head);
  socket.destroy();
  throw new SkepError('source/bad-answer', {
    message: `the cluster does not speak ${protocol} at "${shownUrl(url)}"`,
    hint: 'use a cluster of a supported release of Kubernetes',
  });
}

interface Upgraded {
  readonly socket: Duplex;
  readonly head: Buffer;
  readonly answer: IncomingMessage;
}

function upgraded(url: URL, options: object, signal: AbortSignal): Promise<Upgraded> {
  return new Promise((resolve, reject) => {
    const request = (url.protocol === 'https:' ? httpsRequest : httpRequest)(url, options);
    request.once('upgrade', (answer, socket, head) => resolve({ answer, socket, head }));
    request.once('response', (response) => {
      void saidIn(response).then((said) => {
        response.destroy();
        reject(badStatus({ url, status: response.statusCode ?? 502, said }));
      });
    });
    request.once('error', (cause) => {
      if (signal.aborted) reject(signal.reason as Error);
      else reject(new SkepError('fetch/unreachable', { message: `cannot reach "${shownUrl(url)}"`, cause }));
    });
    request.end();
  });
}

const TEXT = 1;
const BINARY = 2;
const CLOSE = 8;
const PING = 9;
const PONG = 10;

function link(socket: Duplex, head: Buffer): WebSocketLink {
  let take: (message: Buffer) => void = () => undefined;
  let heard = performance.now();
  const reader = new FrameReader((kind, payload) => {
    if (kind === PING) socket.write(frame(PONG, payload));
    else if (kind === CLOSE) socket.destroy();
    else if (kind === TEXT || kind === BINARY) take(payload);
  });
  const read = (chunk: Buffer): void => {
    heard = performance.now();
    if (!reader.read(chunk)) socket.destroy();
  };
  const pings = setInterval(() => {
    if (!socket.isPaused() && performance.now() - heard > SILENCE_MS) socket.destroy();
    else socket.write(frame(PING, Buffer.alloc(0)));
  }, PING_MS).unref();
  socket.on('error', () => socket.destroy()).once('end', () => socket.destroy());
  socket.once('close', () => clearInterval(pings));
  // Nothing is read before whoever opened it has said what to do with it.
  socket.pause();
  if (head.length > 0) socket.unshift(head);
  return {
    send: (message, done) => void socket.write(frame(BINARY, message), done),
    onMessage: (next) => {
      take = next;
      socket.on('data', read).resume();
    },
    onClose: (tell) => void (socket.destroyed ? tell() : socket.once('close', tell)),
    pause: () => void socket.pause(),
    resume: () => {
      heard = performance.now();
      socket.resume();
    },
    close: () => {
      if (socket.destroyed) return;
      socket.end(frame(CLOSE, Buffer.from([0x03, 0xe8])), () => socket.destroy());
    },
  };
}

/** One frame, masked as a client has to (RFC 6455 §5.3). */
function frame(kind: number, payload: Buffer): Buffer {
  const { length } = payload;
  const wide = length > 0xffff ? 8 : length > 125 ? 2 : 0;
  const head = Buffer.alloc(2 + wide + 4);
  head[0] = 0x80 | kind;
  head[1] = 0x80 | (wide === 8 ? 127 : wide === 2 ? 126 : length);
  if (wide === 2) head.writeUInt16BE(length, 2);
  if (wide === 8) head.writeBigUInt64BE(BigInt(length), 2);
  const mask = randomBytes(4);
  mask.copy(head, 2 + wide);
  const masked = Buffer.from(payload);
  for (let at = 0; at < length; at += 1) masked[at] = (masked[at] ?? 0) ^ (mask[at & 3] ?? 0);
  return Buffer.concat([head, masked]);
}

/** Takes frames of a server apart (RFC 6455 §5.2) and puts the parts of a message together. */
class FrameReader {
  readonly #tell: (kind: number, payload: Buffer) => void;
  #chunks: Buffer[] = [];
  #held = 0;
  #parts: Buffer[] = [];
  #kind = 0;

  constructor(tell: (kind: number, payload: Buffer) => void) {
    this.#tell = tell;
  }

  /** False where the other side does not keep to the protocol. */
  read(chunk: Buffer): boolean {
    this.#chunks.push(chunk);
    this.#held += chunk.length;
    for (;;) {
      const next = this.#next();
      if (next === undefined) return true;
      if (next === 'broken') return false;
    }
  }

  #next(): 'read' | 'broken' | undefined {
    if (this.#held < 2) return undefined;
    let held = this.#peek(Math.min(this.#held, 10));
    const [first = 0, second = 0] = held;
    // Servers do not mask, and no extension was agreed on.
    if ((second & 0x80) !== 0 || (first & 0x70) !== 0) return 'broken';
    const short = second & 0x7f;
    const wide = short === 127 ? 8 : short === 126 ? 2 : 0;
    if (held.length < 2 + wide) return undefined;
    const length = wide === 8 ? Number(held.readBigUInt64BE(2)) : wide === 2 ? held.readUInt16BE(2) : short;
    if (length > MAX_MESSAGE_BYTES) return 'broken';
    if (this.#held < 2 + wide + length) return undefined;
    held = this.#peek(this.#held);
    this.#chunks = [held.subarray(2 + wide + length)];
    this.#held -= 2 + wide + length;
    return this.#take(first, held.subarray(2 + wide, 2 + wide + length));
  }

  /** Bytes that are held, in one piece. */
  #peek(length: number): Buffer {
    const [head = Buffer.alloc(0)] = this.#chunks;
    if (head.length >= length) return head.subarray(0, Math.max(length, 0));
    const all = Buffer.concat(this.#chunks);
    this.#chunks = [all];
    return all.subarray(0, length);
  }

  #take(first: number, payload: Buffer): 'read' | 'broken' {
    const kind = first & 0x0f;
    const isLast = (first & 0x80) !== 0;
    if (kind >= CLOSE) {
      this.#tell(kind, payload);
      return 'read';
    }
    if ((kind === 0) === (this.#parts.length === 0)) return 'broken';
    if (kind !== 0) this.#kind = kind;
    this.#parts.push(payload);
    if (this.#parts.reduce((sum, { length }) => sum + length, 0) > MAX_MESSAGE_BYTES) return 'broken';
    if (!isLast) return 'read';
    const whole = Buffer.concat(this.#parts);
    this.#parts = [];
    this.#tell(this.#kind, whole);
    return 'read';
  }
}
