import { randomUUID } from 'node:crypto';
import type { Code } from '@skep/core/errors/codes.ts';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import type { Clock } from '@skep/core/time/clock.ts';
import { ENDPOINT_PATHS } from '../backend/backend.ts';
import type { BackendPort, Newcomer, Peer, Waiter } from '../backend/port.ts';
import { tellAnswer, throughHooks, type Call } from '../call/call.ts';
import type { Step } from '../call/chain.ts';
import { publicAddress, type AddressSettings } from '../call/public-address.ts';
import { refuse, rpcFailure } from '../call/refuse.ts';
import { abilitiesOf } from '../message/client-abilities.ts';
import {
  errorOf,
  idOf,
  type Message,
  type Request,
  type RequestHead,
  type Response,
} from '../message/json-rpc.ts';
import { METHODS } from '../message/methods.ts';
import { wantedBy } from '../message/wanted-version.ts';
import { acceptsStream } from './accept.ts';
import { bodyOf, sharedBodyOf } from './event.ts';
import type { Face } from './face.ts';
import { held } from './held.ts';
import { principalOf } from '../call/principal.ts';
import { sessionToEnd } from './session-to-end.ts';
import { SseSocket } from './sse-socket.ts';
import type { UnreadBudget } from './unread-budget.ts';

const MESSAGES_PATH = '/messages';
/** Each is an open connection; of more than this one gives way to whoever has fewer (session-to-end.ts). */
const MAX_SESSIONS = 4096;

interface SseOptions extends AddressSettings {
  /** Where its stream is; `/sse` by default. */
  readonly path?: string | undefined;
  readonly backend: BackendPort;
  readonly clock: Clock;
  readonly unread: UnreadBudget;
}

/** One client: its stream is its session, and what it hears of. */
interface SseSession extends Peer {
  readonly principal: string;
  readonly socket: SseSocket;
  /** None before it has initialized. */
  abilities: Peer['abilities'];
}

/**
 * HTTP with SSE, the transport of MCP 2024-11-05: GET `/sse` opens the stream, whose first event names where to POST; answers
 * come on the stream (docs/behaviour/proxy.md#sse).
 */
export class Sse implements Face {
  readonly transport = 'sse';
  readonly path: string;
  readonly #options: SseOptions;
  readonly #sessions = new Map<string, SseSession>();

  constructor(options: SseOptions) {
    this.#options = options;
    this.path = options.path ?? ENDPOINT_PATHS.sse;
  }

  readonly step: Step = (call) => {
    const { req, res, path } = call;
    const method = path === this.path ? 'GET' : 'POST';
    if (path !== this.path && path !== MESSAGES_PATH) refuse(res, 'proxy/no-route');
    else if (req.method !== method)
      refuse(res, 'proxy/method-not-allowed', { headers: { Allow: `${method}, OPTIONS` } });
    else if (method === 'GET') this.#open(call);
    else this.#post(call);
    return Promise.resolve();
  };

  endSessions(): void {
    for (const session of this.#sessions.values()) this.#end(session);
  }

  /** A stream that ends takes the answers of its calls along, so calls in flight are waited for. */
  drain(): void {
    for (const session of this.#sessions.values()) if (session.unanswered === 0) this.#end(session);
  }

  close(): void {
    this.endSessions();
  }

  #open(call: Call): void {
    const { req, res, identity, replyHooks } = call;
    if (identity === undefined) throw new SkepError('internal/bug');
    if (req.headers.accept !== undefined && !acceptsStream(req.headers.accept)) {
      refuse(res, 'proxy/not-acceptable');
      return;
    }
    const principal = principalOf(identity);
    if (this.#sessions.size >= MAX_SESSIONS && !this.#makeRoom(principal)) {
      refuse(res, 'proxy/session-limit');
      return;
    }
    const { clock, unread, backend } = this.#options;
    const socket = new SseSocket(res, { clock, budget: unread });
    const session: SseSession = {
      kind: 'session',
      key: randomUUID(),
      principal,
      socket,
      abilities: new Set(),
      logLevel: undefined,
      unanswered: 0,
      listener: {
        get live() {
          return socket.open;
        },
        send(message) {
          const passed = throughHooks(replyHooks, { message, request: undefined });
          if (passed !== undefined) socket.write({ lead: '', body: sharedBodyOf(passed) });
        },
      },
      forgotten: () => this.#end(session),
    };
    this.#sessions.set(session.key, session);
    socket.onClose(() => this.#end(session));
    socket.start(`event: endpoint\ndata: ${this.#endpointOf(call, session)}\n\n`);
    backend.listens(session);
  }

  /** Each is in use, and they are in the order in which they were opened. */
  #makeRoom(principal: string): boolean {
    const use = { isIdle: () => false, lastSeen: () => 0 };
    const over = sessionToEnd(this.#sessions.values(), principal, use);
    if (over !== undefined) this.#end(over);
    return over !== undefined;
  }

  #endpointOf(call: Call, { key }: SseSession): string {
    const { outer, forwardedOrigin } = publicAddress(call, this.#options);
    const origin = forwardedOrigin ?? `http://${call.authority ?? call.req.headers.host ?? ''}`;
    return `${origin}${outer.replace(/\/sse$/u, '')}${call.prefix}${MESSAGES_PATH}?session_id=${key}`;
  }

  #end(session: SseSession): void {
    if (!this.#sessions.delete(session.key)) return;
    this.#options.backend.leave(session);
    session.socket.end();
  }

  answer(call: Call, request: RequestHead, answer: Response): void {
    const session = this.#sessionOf(call, request.id);
    if (session === undefined) return;
    accept(call);
    call.isAnsweredElsewhere = true;
    waiterOn(session.socket, request, call).finish(answer);
  }

  #post(call: Call): void {
    const { incoming } = call;
    if (incoming === undefined) throw new SkepError('internal/bug');
    const { message } = incoming;
    const session = this.#sessionOf(call, idOf(message));
    if (session !== undefined) this.#take(call, session, message);
  }

  /** The session that a POST names; answers the call itself when there is none. */
  #sessionOf(call: Call, id: string | undefined): SseSession | undefined {
    const { identity, res, target } = call;
    if (identity === undefined) throw new SkepError('internal/bug');
    const key = new URLSearchParams(target.slice(MESSAGES_PATH.length)).get('session_id');
    const session = key === null ? undefined : this.#sessions.get(key);
    if (key === null || key === '')
      refuse(res, 'proxy/session-missing', { message: 'session_id is required' });
    else if (call.incoming?.era === 'modern') refuse(res, 'proxy/not-json-rpc', { id });
    else if (session === undefined || session.principal !== principalOf(identity))
      refuse(res, 'proxy/session-unknown', { id });
    else return session;
    return undefined;
  }

  #take(call: Call, session: SseSession, message: Message): void {
    const { backend } = this.#options;
    const { res, answerHolds } = call;
    session.credentials = call.credentials;
    if (backend.state !== 'attached') {
      refuse(res, 'proxy/backend-away', { id: idOf(message) });
      return;
    }
    if (message.kind === 'request') {
      // Before the answer, which comes on another connection.
      accept(call);
      call.isAnsweredElsewhere = true;
      const waiter = waiterOn(session.socket, headOf(message), call);
      if (message.method === METHODS.initialize) this.#initialize(session, message, waiter);
      else backend.request(session, message, held(waiter, answerHolds));
      return;
    }
    const taken =
      message.kind === 'response' ? backend.answer(session, message) : backend.notify(session, message);
    if (taken) accept(call);
    else refuse(res, 'proxy/busy');
  }

  #initialize(session: SseSession, request: Request, waiter: Waiter): void {
    const { id } = request;
    const abilities = abilitiesOf(request);
    const newcomer: Newcomer = {
      id,
      wanted: wantedBy(request),
      credentials: session.credentials,
      welcome: (reply) => {
        if (!session.socket.open) return undefined;
        session.abilities = abilities;
        waiter.finish(reply);
        return session;
      },
      refuse: (reply) => waiter.finish(reply),
      fail: (code, said) => waiter.fail(code, said),
    };
    const leave = this.#options.backend.initialize(newcomer);
    session.socket.onClose(() => {
      leave();
      waiter.fail('proxy/client-gone');
    });
  }
}

function headOf({ id, method }: Request): RequestHead {
  return { id, method };
}

function accept({ res }: Call): void {
  res.writeHead(202, { 'Content-Type': 'text/plain; charset=utf-8', 'Content-Length': '8' }).end('Accepted');
}

/** The answer to one request, on the stream of its client. */
function waiterOn(
  socket: SseSocket,
  request: RequestHead,
  { replyHooks, answerHooks }: Pick<Call, 'replyHooks' | 'answerHooks'>,
): Waiter {
  let isTold = false;
  const tell = (message: Message): void => {
    if (isTold || message.kind !== 'response') return;
    isTold = true;
    tellAnswer(answerHooks, message);
  };
  const put = (message: Message): boolean => {
    const passed = throughHooks(replyHooks, { message, request });
    if (passed === undefined) return false;
    const frame = { lead: '', body: bodyOf(passed.text) };
    if (passed.kind === 'notification' && passed.method === METHODS.progress) socket.writeDroppable(frame);
    else socket.write(frame);
    tell(passed);
    return true;
  };
  const fail = (code: Code, message?: string): void => {
    const error = errorOf(request.id, rpcFailure(code, { message }));
    tell(error);
    if (code !== 'proxy/cancelled') socket.write({ lead: '', body: bodyOf(error.text) });
  };
  return {
    get carries() {
      return socket.open;
    },
    send: (message) => void put(message),
    finish(reply) {
      if (!put(reply)) fail('proxy/withheld');
    },
    fail,
  };
}
