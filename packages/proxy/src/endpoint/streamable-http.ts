import { SkepError } from '@skep/core/errors/skep-error.ts';
import { ENDPOINT_PATHS } from '../backend/backend.ts';
import { ModernCalls } from '../backend/modern/modern-calls.ts';
import type { BackendPort } from '../backend/port.ts';
import { throughHooks, type Call } from '../call/call.ts';
import type { Step } from '../call/chain.ts';
import type { Clock } from '@skep/core/time/clock.ts';
import { MODERN_VERSION } from '../message/protocol-version.ts';
import { idOf, type RequestHead, type Response } from '../message/json-rpc.ts';
import { acceptsStream, replyForm } from './accept.ts';
import { sharedBodyOf } from './event.ts';
import type { Face } from './face.ts';
import { post } from './post.ts';
import { refuse } from '../call/refuse.ts';
import { readEventId, type EventId } from './replay.ts';
import { principalOf } from '../call/principal.ts';
import type { SharedSessions } from '../backend/replicas/shared-sessions.ts';
import { ReplicatedSessions } from './replicated-sessions.ts';
import { Sessions, type Session, type SessionsOptions } from './sessions.ts';
import { SseSocket } from './sse-socket.ts';
import type { UnreadBudget } from './unread-budget.ts';
import { waiterFor } from './waiters.ts';

interface StreamableHttpOptions extends SessionsOptions {
  readonly backend: BackendPort;
  /** Where it is; `/mcp` by default. */
  readonly path?: string | undefined;
  readonly unread: UnreadBudget;
  /** What other replicas of the proxy know of sessions, where the backend can go on with these. */
  readonly shared?: SharedSessions | undefined;
  /** Clients sign in, so each has sessions of its own. */
  readonly signedIn: boolean;
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
  readonly #replicas: ReplicatedSessions | undefined;

  constructor(options: StreamableHttpOptions) {
    this.path = options.path ?? ENDPOINT_PATHS.http;
    this.#clock = options.clock;
    this.#backend = options.backend;
    this.#sessions = new Sessions(options);
    this.#budget = options.unread;
    this.#calls = new ModernCalls(options.backend, options.clock);
    const { shared, backend } = options;
    const sessions = this.#sessions;
    if (shared === undefined || backend.replicated === undefined) return;
    const replicas = new ReplicatedSessions({ ...options, shared, sessions, port: backend.replicated });
    this.#replicas = replicas;
    sessions.onInUse = (session) => void replicas.check(session);
  }

  readonly step: Step = (call) => {
    if (this.#replicas !== undefined) return this.#handleOfAny(call, this.#replicas);
    this.#handle(call);
    return Promise.resolve();
  };

  /** The session that a call names may have begun at another replica. */
  async #handleOfAny(call: Call, replicas: ReplicatedSessions): Promise<void> {
    const { req, res, incoming, identity, credentials } = call;
    const id = req.headers['mcp-session-id'];
    try {
      if (typeof id === 'string' && identity !== undefined && incoming?.era !== 'modern')
        await replicas.meet({ id, principal: principalOf(identity), credentials });
    } catch (error) {
      if (!(error instanceof SkepError)) throw error;
      refuse(res, error.code, { id: incoming && idOf(incoming.message) });
    }
    if (!res.headersSent && !res.destroyed) this.#handle(call);
  }

  /** Clients learn it by "Session not found". */
  endSessions(): void {
    this.#sessions.letGoOfAll();
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
        replicas: this.#replicas,
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
    const from = call.req.headers['last-event-id'];
    const last = typeof from === 'string' ? readEventId(from) : undefined;
    if (last !== undefined && session.isElsewhere(last.stream)) {
      refuse(call.res, 'proxy/stream-elsewhere');
      return;
    }
    const socket = new SseSocket(call.res, { clock: this.#clock, budget: this.#budget });
    const isResumed = last !== undefined && resume(session, last, socket);
    if (!isResumed) openStandalone(session, call, socket);
    if (!isResumed || session.listener?.live === true) this.#backend.listens(session);
    const { replicated } = this.#backend;
    if (replicated === undefined) return;
    call.res.once('close', () => {
      if (session.listener?.live !== true) replicated.deaf(session);
    });
  }

  #delete(call: Call): void {
    const session = this.#sessionOf(call);
    if (session === undefined) return;
    session.credentials = call.credentials;
    const end = (): void => {
      this.#sessions.end(session);
      call.res.writeHead(204).end();
    };
    if (this.#replicas === undefined) end();
    // First that it is over: another replica would begin anew what the server does not know any more.
    else
      this.#replicas
        .ended(session)
        .then(end)
        .catch(() => call.res.destroy());
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
  const stream = session.openStream('unasked');
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
function resume(session: Session, from: EventId, socket: SseSocket): boolean {
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
