import type { Code } from '@skep/core/errors/codes.ts';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import type { Ability } from '../../message/client-abilities.ts';
import type { Message, Response } from '../../message/json-rpc.ts';

/** Takes messages of the server that no request of the client asked for. */
export interface Listener {
  /** A client reads it now. */
  readonly live: boolean;
  send(message: Message): void;
}

/** One client as the mux sees it. A `one-off` has no session and hears of nothing but its own request. */
export interface Peer {
  readonly kind: 'session' | 'one-off' | 'proxy';
  readonly key: string;
  readonly listener: Listener | undefined;
  /** What it can be asked; a server believes all clients to be able to do everything. */
  readonly abilities: ReadonlySet<Ability>;
  /** Least severe log level wanted; undefined wants all. Kept by log-levels.ts. */
  logLevel: string | undefined;
  /** Its requests that wait for an answer. Kept by in-flight.ts. */
  unanswered: number;
}

/** Where the answer to one request goes, and what the server says meanwhile. Ends with exactly one of the last three. */
export interface Waiter {
  /** Messages before the answer can reach the client (an event stream, not a JSON body). */
  readonly carries: boolean;
  send(message: Message): void;
  finish(reply: Response): void;
  fail(code: Code): void;
}

/** Nobody waits. */
export const DEAF: Waiter = { carries: false, send() {}, finish() {}, fail() {} };

/** A waiter, and the text that it is answered with; rejects with the code of a failure. */
export function awaited(): { readonly promise: Promise<string>; readonly waiter: Waiter } {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const fail = (code: Code): void => reject(new SkepError(code));
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
    fail(code) {
      then(false);
      waiter.fail(code);
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
