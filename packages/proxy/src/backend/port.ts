import type { Code } from '@skep/core/errors/codes.ts';
import { hasCode, SkepError } from '@skep/core/errors/skep-error.ts';
import type { Credentials } from '../call/call.ts';
import type { Ability } from '../message/client-abilities.ts';
import type { JsonObject, Message, Notification, Request, Response } from '../message/json-rpc.ts';

/** `attaching` tries again by itself; `lost` waits for `restarted`. */
export type PortState = 'attached' | 'attaching' | 'lost';

/**
 * What stands behind every face: it speaks messages, and knows neither HTTP towards clients nor which faces there are
 * (decision 0319). Ids and progress tokens are the client's on this side of it; what the server sees is the backend's own
 * matter, and so are sessions with the server. A face calls `throughHooks` on whatever it is given, once.
 */
export interface BackendPort {
  readonly state: PortState;
  /** Rejects when the server cannot be reached. */
  attach(): Promise<void>;
  /** Makes or joins a handshake. Gives back what is to be called when the newcomer's client has gone. */
  initialize(newcomer: Newcomer): () => void;
  /** That client opened a stream that it hears on what no request of its asked for. */
  listens(peer: Peer): void;
  /** The session is over: its calls are cancelled, its questions answered with an error, its subscriptions ended. */
  leave(peer: Peer): void;
  /** A client without a session has gone: nobody can hear the answers to its requests any more. */
  gone(peer: Peer): void;
  /** A request of a client. The waiter hears exactly one `finish` or `fail`, possibly before this returns. */
  request(peer: Peer, request: Request, waiter: Waiter): void;
  /** A notification of a client. False when the server cannot take it now. */
  notify(peer: Peer, message: Notification): boolean;
  /**
   * A client's answer to a request of the server; what nobody asked this client is dropped. False as in `notify`. Fails with
   * `proxy/question-elsewhere` where another replica may have asked it, and no answer of this one reaches the server.
   */
  answer(peer: Peer, reply: Response): boolean;
  /**
   * The handshake ahead of any client. Resolves with its result, or undefined when the server answered with an error; rejects
   * with the code of what kept it from answering.
   */
  greet(): Promise<unknown>;
  /**
   * A request of whoever runs the proxy, after `greet` (docs/behaviour/proxy.md#the-handshake). Resolves with the text of
   * the answer, an error too; rejects with the code of what kept the server from answering.
   */
  ask(method: string, params: JsonObject): Promise<string>;
  /**
   * What the server speaks, for a modern client; the server is asked where nobody knows yet. Rejects with the code of what kept
   * it from answering.
   */
  meet(peer: Peer): Promise<Met>;
  /** A peer that hears what concerns everybody from now on, until it leaves. */
  join(peer: Peer): void;
  /** The server's process has ended: nothing it said holds, and nobody can be answered until `restarted`. */
  ended(): void;
  /** The server was started anew: nothing of before holds any longer. */
  restarted(): void;
  /** Present where replicas of the proxy serve the same sessions (decision 0445). */
  readonly replicated?: ReplicatedPort;
  /** Idempotent. */
  close(): void;
}

/** What a session with the server is to whoever goes on with it. */
export interface ServerSession {
  /** What the server calls it; undefined for one that names none. */
  readonly name: string | undefined;
  /** The revision that it speaks. */
  readonly version: string;
  /** The `initialize` that begins it anew. */
  readonly body: string;
}

/** Sessions that other replicas of the proxy serve, too. */
export interface ReplicatedPort {
  /**
   * A client whose session began at another replica: `session` is what that has with the server, null where the server has no
   * sessions. Rejects as `meet`.
   */
  adopt(peer: Peer, session: ServerSession | null): Promise<void>;
  /** As `leave`, of a session that may go on at another replica: the server does not hear that it is over. */
  letGo(peer: Peer): void;
  /** That client hears nothing unasked any more, until it `listens` again; another replica may ask the server for that now. */
  deaf(peer: Peer): void;
}

/**
 * To a modern server requests go as modern clients made them; a legacy one has agreed on a revision by a handshake, whose result
 * this is.
 */
export type Met = { readonly era: 'modern' } | { readonly era: 'legacy'; readonly agreed: JsonObject };

/** What a client waits for when it initializes. `version` is the revision agreed with this client. */
export interface Newcomer {
  /** The id of its request, raw JSON text. Of the request itself nothing is kept: a server may never answer. */
  readonly id: string;
  /** The revision that it asks for, if we know it. */
  readonly wanted: string | undefined;
  /** What its request brought for the server. */
  readonly credentials?: Credentials | undefined;
  /**
   * Gives back the client whose session begins; undefined where none does. `session` is what other replicas can go on with, null
   * where the server has no sessions or there are no others.
   */
  welcome(reply: Response, version: string, session?: ServerSession | null): Peer | undefined;
  refuse(reply: Response): void;
  /** `said` tells it instead of the title of `code`. */
  fail(code: Code, said?: string): void;
}

/** Takes messages of the server that no request of the client asked for. */
export interface Listener {
  /** A client reads it now. */
  readonly live: boolean;
  send(message: Message): void;
}

/**
 * One client as a backend sees it. A `one-off` has no session and hears of nothing but its own request; a `call` is one request
 * of a modern client, which can be asked something meanwhile; an `errand` is a request of the proxy before a call of that client,
 * about which nobody can be asked; a `listener` only hears what concerns everybody.
 */
export interface Peer {
  readonly kind: 'session' | 'one-off' | 'call' | 'errand' | 'listener' | 'proxy';
  /** Of a call, an errand or a listener, whose it is: a principal. */
  readonly key: string;
  /** Whose session it is; absent where it has none. */
  readonly principal?: string | undefined;
  readonly listener: Listener | undefined;
  /** What it can be asked; a server believes all clients to be able to do everything. */
  readonly abilities: ReadonlySet<Ability>;
  /** Least severe log level wanted; undefined wants all. Kept by mux/log-levels.ts. */
  logLevel: string | undefined;
  /** Its requests that wait for an answer. Kept by mux/in-flight.ts. */
  unanswered: number;
  /** What a modern client repeats of its call for the server (`Mcp-Param-…`); absent where that is for whoever asks the server. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** What its latest call brought for the server: a server over HTTP gets it with all that this client sends. Kept by faces. */
  credentials?: Credentials | undefined;
  /** The server has forgotten this client: its session is over. Absent where none can be. */
  forgotten?(): void;
  /** See `SharedSessions.renewed`; absent where no other replica serves the session. */
  readonly renewed?: ((begin?: () => Promise<string | undefined>) => Promise<string | undefined>) | undefined;
}

/** Where the answer to one request goes, and what the server says meanwhile. Ends with exactly one of the last three. */
export interface Waiter {
  /** Messages before the answer can reach the client (an event stream, not a JSON body). */
  readonly carries: boolean;
  /** False while its client has to come back for it first. */
  readonly attended?: boolean;
  send(message: Message): void;
  finish(reply: Response): void;
  /** As of a newcomer. */
  fail(code: Code, said?: string): void;
}

/** Nobody waits. */
export const DEAF: Waiter = { carries: false, send() {}, finish() {}, fail() {} };

/** What a waiter failed with, as an error. */
export function failureWith(code: Code, said: string | undefined): SkepError {
  return new SkepError(code, said === undefined ? {} : { message: said });
}

/** What `failureWith` made, for another waiter; undefined for all other errors. */
export function saidBy(error: unknown): string | undefined {
  return hasCode(error, 'proxy/server-refused') ? error.message : undefined;
}

/** A waiter, and the text that it is answered with; rejects with the code of a failure. */
export function awaited(): { readonly promise: Promise<string>; readonly waiter: Waiter } {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const fail = (code: Code, said?: string): void => reject(failureWith(code, said));
  return { promise, waiter: { ...DEAF, finish: ({ text }) => resolve(text), fail } };
}

/** `waiter`, with `then` told first whether the request succeeded. */
export function told(waiter: Waiter, then: (succeeded: boolean) => void): Waiter {
  return {
    get carries() {
      return waiter.carries;
    },
    send: (message) => waiter.send(message),
    finish(reply) {
      then(!reply.failed);
      waiter.finish(reply);
    },
    fail(code, said) {
      then(false);
      waiter.fail(code, said);
    },
  };
}

const NOBODY = {
  key: '',
  listener: undefined,
  abilities: new Set<Ability>(),
  logLevel: undefined,
  unanswered: 0,
} as const;

/** A client without a session, for one request. */
export function oneOff(): Peer {
  return { ...NOBODY, kind: 'one-off' };
}

/** The proxy itself, for requests that it sends on behalf of all clients. */
export const SELF: Peer = { ...NOBODY, kind: 'proxy' };
