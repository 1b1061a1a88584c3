import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { Server, Socket } from 'node:net';
import type { Clock, Timer } from '@skep/core/time/clock.ts';
import { acceptFrom } from './accept.ts';
import { answerSocket } from './forward-request.ts';

export interface HttpHandlers {
  readonly request: (req: IncomingMessage, res: ServerResponse) => Promise<void>;
  /** Owns the connection from now on. */
  readonly upgrade: (req: IncomingMessage, socket: Socket, head: Buffer) => Promise<void>;
  /** `CONNECT`, answered with 405 without it; owns the connection from now on. */
  readonly connect?: (req: IncomingMessage, socket: Socket, head: Buffer) => Promise<void>;
}

const MAX_HEADER_BYTES = 64 * 1024;
/** From a connection's beginning, and from an answer's end, to the next request with all its headers. */
const HEADERS_MS = 30_000;
const NEXT_REQUEST_MS = 70_000;
const KEEP_ALIVE_MS = 60_000;
/** Requests that wait for the answers to those before them (RFC 9112 §9.3.2). */
const MAX_PIPELINED = 16;

/**
 * Serves HTTP/1.1 on a listener that somebody else opened, with bounds on connections, headers and the time between
 * requests; a request and its answer may take any time, and those of one connection are answered one after the other. The strict parser refuses what could be read in two ways
 * (RFC 9112 §11.2). `answersHalfOpen`: a client that
 * ends its own direction after a request still gets the answer, at the price that one that goes is noticed later.
 */
export function serveHttp(
  listener: Server,
  clock: Clock,
  handlers: HttpHandlers,
  answersHalfOpen = false,
): void {
  const waits = new WeakMap<Socket, Wait>();
  const http = createServer({
    maxHeaderSize: MAX_HEADER_BYTES,
    keepAliveTimeout: KEEP_ALIVE_MS,
    requestTimeout: 0,
    insecureHTTPParser: false,
    requireHostHeader: true,
  });
  // Those beyond a number would be left out unseen, a body's length perhaps.
  http.maxHeadersCount = 0;
  // A property that Node has without declaring it.
  Object.assign(http, { httpAllowHalfOpen: answersHalfOpen });
  http.on('request', (req, res) => {
    const { socket } = req;
    const wait = waits.get(socket);
    if (wait === undefined || wait.open > MAX_PIPELINED) {
      socket.destroy();
      return;
    }
    res.on('error', () => void res.destroy());
    wait
      .turn(res)
      .then(() => (socket.destroyed ? undefined : handlers.request(req, res)))
      .catch(() => void res.destroy());
  });
  const owned = (own: HttpHandlers['upgrade']) => (req: IncomingMessage, stream: unknown, head: Buffer) => {
    const socket = stream as Socket;
    const wait = waits.get(socket);
    // An answer that is under way would get into what follows.
    if (wait === undefined || wait.open > 0) return void socket.destroy();
    wait.begin();
    return void own(req, socket, head).catch(() => void socket.destroy());
  };
  http.on('upgrade', owned(handlers.upgrade));
  http.on('connect', owned(handlers.connect ?? refuseConnect));
  http.on('clientError', (_error, stream) => {
    const wait = waits.get(stream as Socket);
    // An answer that is under way must not be taken for the one to what cannot be read.
    if (wait === undefined || wait.open > 0 || !stream.writable) stream.destroy();
    else {
      answerSocket(stream as Socket, 400, 'this is no request that can be read');
      // Nothing more is read of it, so its end would not be noticed.
      wait.soon();
    }
  });
  acceptFrom(listener, (socket) => {
    waits.set(socket, new Wait(socket, clock));
    http.emit('connection', socket);
  });
}

async function refuseConnect(_req: IncomingMessage, socket: Socket): Promise<void> {
  answerSocket(socket, 405, 'this is no proxy');
}

/** Ends a connection on which no request is under way for too long. */
class Wait {
  readonly #socket: Socket;
  readonly #clock: Clock;
  #timer: Timer;
  #open = 0;
  #last = Promise.resolve();

  constructor(socket: Socket, clock: Clock) {
    this.#socket = socket;
    this.#clock = clock;
    this.#timer = this.#after(HEADERS_MS);
    socket.once('close', () => this.#timer.cancel());
  }

  /** Requests that are under way, or wait for those. */
  get open(): number {
    return this.#open;
  }

  begin(): void {
    this.#open += 1;
    this.#timer.cancel();
  }

  /** A request has begun; resolves when those before it are answered. */
  turn(res: ServerResponse): Promise<void> {
    this.begin();
    const before = this.#last;
    this.#last = new Promise((resolve) => {
      res.once('close', () => {
        this.#open -= 1;
        if (this.#open === 0 && !this.#socket.destroyed) this.#timer = this.#after(NEXT_REQUEST_MS);
        resolve();
      });
    });
    return before;
  }

  /** The client has been told that this connection is over. */
  soon(): void {
    this.#timer.cancel();
    if (!this.#socket.destroyed) this.#timer = this.#after(1_000);
  }

  #after(ms: number): Timer {
    return this.#clock.after(ms, () => void this.#socket.destroy());
  }
}
