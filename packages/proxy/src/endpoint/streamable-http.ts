import { SkepError } from '@skep/core/errors/skep-error.ts';
import type { Mux } from '../backend/stdio/mux.ts';
import type { Call } from '../call/call.ts';
import type { Step } from '../call/chain.ts';
import type { Clock } from '@skep/core/time/clock.ts';
import { MODERN_VERSION } from '../message/protocol-version.ts';
import { acceptsStream } from './accept.ts';
import { post } from './post.ts';
import { refuse } from '../call/refuse.ts';
import { readEventId } from './replay.ts';
import { principalOf, Sessions, type Session } from './sessions.ts';
import { SseSocket } from './sse-socket.ts';
import { StandaloneStream } from './standalone.ts';
import type { UnreadBudget } from './unread-budget.ts';

export const ENDPOINT_PATH = '/mcp';

export interface StreamableHttpOptions {
  readonly mux: Mux;
  readonly clock: Clock;
  readonly sessionTtlMs: number;
  readonly budget: UnreadBudget;
}

/** The MCP endpoint of a stdio server: POST, GET and DELETE on `/mcp` (docs/behaviour/proxy.md#streamable-http). */
export class StreamableHttp {
  readonly #options: StreamableHttpOptions;
  readonly #sessions: Sessions;

  constructor(options: StreamableHttpOptions) {
    const { mux, clock, sessionTtlMs } = options;
    this.#options = options;
    this.#sessions = new Sessions({
      clock,
      ttlMs: sessionTtlMs,
      isBusy: (session) => mux.isBusy(session),
      onJoin: (session) => mux.join(session),
      onLeave: (session) => mux.leave(session),
    });
  }

  /** The last row of the chain. */
  readonly step: Step = (call) => {
    this.#handle(call);
    return Promise.resolve();
  };

  /** The server's process has ended; sessions stay until it was started anew, so that clients hear why. */
  backendEnded(): void {
    this.#options.mux.ended();
  }

  /** The server was started anew: all sessions are void, and clients learn so by "Session not found". */
  backendStarted(): void {
    this.#options.mux.restarted();
    this.#sessions.endAll();
  }

  /** Ends the streams that nobody's call waits on; calls in flight may still finish. */
  endStandaloneStreams(): void {
    this.#sessions.endStandaloneStreams();
  }

  close(): void {
    this.#options.mux.close();
    this.#sessions.close();
  }

  #handle(call: Call): void {
    const { req, res, path } = call;
    if (path !== ENDPOINT_PATH) refuse(res, 'proxy/no-route');
    else if (req.method === 'POST') this.#post(call);
    else if (req.method === 'GET') this.#get(call);
    else if (req.method === 'DELETE') this.#delete(call);
    else refuse(res, 'proxy/method-not-allowed', { headers: { Allow: 'GET, POST, DELETE, OPTIONS' } });
  }

  #post(call: Call): void {
    const { mux, clock, budget } = this.#options;
    post(call, { mux, clock, sessions: this.#sessions, budget });
  }

  #get(call: Call): void {
    const session = this.#sessionOf(call);
    if (session === undefined) return;
    if (!acceptsStream(call.req.headers.accept)) {
      refuse(call.res, 'proxy/not-acceptable');
      return;
    }
    const socket = new SseSocket(call.res, { clock: this.#options.clock, budget: this.#options.budget });
    const from = call.req.headers['last-event-id'];
    if (typeof from !== 'string' || !resume(session, from, socket)) {
      openStandalone(session, call, socket);
      this.#options.mux.listens();
    }
  }

  #delete(call: Call): void {
    const session = this.#sessionOf(call);
    if (session === undefined) return;
    this.#sessions.end(session);
    call.res.writeHead(204).end();
  }

  /** The session that a GET or DELETE names; answers the call itself when there is none. */
  #sessionOf(call: Call): Session | undefined {
    const { req, res, identity } = call;
    if (identity === undefined) throw new SkepError('internal/bug');
    if (req.headers['mcp-protocol-version'] === MODERN_VERSION) {
      refuse(res, 'proxy/method-not-allowed', { headers: { Allow: 'POST, OPTIONS' } });
      return undefined;
    }
    const id = req.headers['mcp-session-id'];
    if (id === undefined) {
      refuse(res, 'proxy/session-missing');
      return undefined;
    }
    const session = typeof id === 'string' ? this.#sessions.find(id, principalOf(identity)) : undefined;
    if (session === undefined) refuse(res, 'proxy/session-unknown');
    return session;
  }
}

/** A newer GET takes the place of an older one, whose stream ends cleanly. */
function openStandalone(session: Session, call: Call, socket: SseSocket): void {
  if (session.listener !== undefined) {
    session.listener.stream.end();
    session.streamDone(session.listener.stream);
  }
  const stream = session.openStream();
  stream.attach(socket);
  session.listener = new StandaloneStream(stream, call.replyHooks);
  stream.start();
}

/** Sends what the client missed of one stream and goes on with it. False when nothing is known of that stream. */
function resume(session: Session, lastEventId: string, socket: SseSocket): boolean {
  const from = readEventId(lastEventId);
  if (from === undefined) return false;
  const stream = session.stream(from.stream);
  const missed = session.replay.after(from.stream, from.sequence);
  if (stream !== undefined) {
    stream.attach(socket, missed);
    stream.start();
    return true;
  }
  if (missed === undefined) return false;
  if (missed.length > 0) socket.write(...missed);
  socket.end();
  return true;
}
