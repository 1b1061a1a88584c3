import { SkepError } from '@skep/core/errors/skep-error.ts';
import { ENDPOINT_PATHS } from '../backend/backend.ts';
import { ModernCalls } from '../backend/modern/modern-calls.ts';
import type { BackendPort } from '../backend/port.ts';
import { throughHooks, type Call } from '../call/call.ts';
import type { Step } from '../call/chain.ts';
import type { Clock } from '@skep/core/time/clock.ts';
import { MODERN_VERSION } from '../message/protocol-version.ts';
import type { RequestHead, Response } from '../message/json-rpc.ts';
import { acceptsStream, replyForm } from './accept.ts';
import { sharedBodyOf } from './event.ts';
import type { Face } from './face.ts';
import { post } from './post.ts';
import { refuse } from '../call/refuse.ts';
import { readEventId } from './replay.ts';
import { principalOf } from '../call/principal.ts';
import { Sessions, type Session, type SessionsOptions } from './sessions.ts';
import { SseSocket } from './sse-socket.ts';
import type { UnreadBudget } from './unread-budget.ts';
import { waiterFor } from './waiters.ts';

interface StreamableHttpOptions extends SessionsOptions {
  readonly backend: BackendPort;
  /** Where it is; `/mcp` by default. */
  readonly path?: string | undefined;
  readonly unread: UnreadBudget;
}

/** The MCP endpoint: POST, GET and DELETE (docs/behaviour/proxy.md#streamable-http). */
export class StreamableHttp implements Face {
  readonly transport = 'streamable-http';
  readonly path: string;
  readonly #clock: Clock;
  readonly #backend: BackendPort;
  readonly #sessions: Sessions;
  readonly #budget: UnreadBudget;
  readonly #calls: ModernCalls;

  constructor(options: StreamableHttpOptions) {
    this.path = options.path ?? ENDPOINT_PATHS.http;
    this.#clock = options.clock;
    this.#backend = options.backend;
    this.#sessions = new Sessions(options);
    this.#budget = options.unread;
    this.#calls = new ModernCalls(options.backend, options.clock);
  }

  readonly step: Step = (call) => {
    this.#handle(call);
    return Promise.resolve();
  };

  /** Clients learn it by "Session not found". */
  endSessions(): void {
    this.#sessions.endAll();
    this.#calls.endStreams();
  }

  drain(): void {
    this.#sessions.endStandaloneStreams();
    this.#calls.endStreams();
  }

  close(): void {
    this.#sessions.close();
  }

  answer(call: Call, request: RequestHead, answer: Response): void {
    const { req, res, replyHooks, answerHooks } = call;
    const form = replyForm(req.headers.accept);
    if (form === 'neither') {
      refuse(res, 'proxy/not-acceptable', { id: request.id });
      return;
    }
    // Nothing comes before such an answer, and nobody has to fetch it later.
    const whole = { session: undefined, form: form === 'either' ? 'json' : form } as const;
    const posted = {
      res,
      replyHooks,
      answerHooks,
      request,
      clock: this.#clock,
      budget: this.#budget,
      ...whole,
    };
    waiterFor(posted).finish(answer);
  }

  #handle(call: Call): void {
    const { req, res, path } = call;
    if (path !== this.path) refuse(res, 'proxy/no-route');
    else if (req.method === 'POST')
      post(call, {
        backend: this.#backend,
        clock: this.#clock,
        sessions: this.#sessions,
        budget: this.#budget,
        calls: this.#calls,
      });
    else if (req.method === 'GET') this.#get(call);
    else if (req.method === 'DELETE') this.#delete(call);
    else refuse(res, 'proxy/method-not-allowed', { headers: { Allow: 'GET, POST, DELETE, OPTIONS' } });
  }

  #get(call: Call): void {
    const session = this.#sessionOf(call);
    if (session === undefined) return;
    session.credentials = call.credentials;
    if (!acceptsStream(call.req.headers.accept)) {
      refuse(call.res, 'proxy/not-acceptable');
      return;
    }
    const socket = new SseSocket(call.res, { clock: this.#clock, budget: this.#budget });
    const from = call.req.headers['last-event-id'];
    if (typeof from !== 'string' || !resume(session, from, socket)) {
      openStandalone(session, call, socket);
      this.#backend.listens(session);
    }
  }

  #delete(call: Call): void {
    const session = this.#sessionOf(call);
    if (session === undefined) return;
    session.credentials = call.credentials;
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
    const session = typeof id === 'string' ? this.#sessions.find(id, principalOf(identity)) : undefined;
    if (id === undefined) refuse(res, 'proxy/session-missing');
    else if (session === undefined) refuse(res, 'proxy/session-unknown');
    return session;
  }
}

/** A newer GET takes the place of an older one, whose stream ends cleanly. */
function openStandalone(session: Session, { replyHooks }: Call, socket: SseSocket): void {
  if (session.listener !== undefined) {
    session.listener.stream.end();
    session.streamDone(session.listener.stream);
  }
  const stream = session.openStream();
  stream.attach(socket);
  session.listener = {
    stream,
    get live() {
      return stream.live;
    },
    send(message) {
      const passed = throughHooks(replyHooks, { message, request: undefined });
      if (passed !== undefined) stream.send(sharedBodyOf(passed));
    },
  };
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
