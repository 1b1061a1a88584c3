import type { Code } from '@skep/core/errors/codes.ts';
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
  /** Least severe log level wanted; undefined wants all. Kept by log-levels.ts. */
  logLevel: string | undefined;
}

/** Where the answer to one request goes, and what the server says meanwhile. Ends with exactly one of the last three. */
export interface Waiter {
  /** Messages before the answer can reach the client (an event stream, not a JSON body). */
  readonly carries: boolean;
  send(message: Message): void;
  finish(reply: Response): void;
  fail(code: Code): void;
}

/** `waiter`, with `then` told first whether the request succeeded. */
export const told = (waiter: Waiter, then: (succeeded: boolean) => void): Waiter => ({
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
});

/** A client without a session, for one request. */
export const oneOff = (): Peer => ({ kind: 'one-off', key: '', listener: undefined, logLevel: undefined });
