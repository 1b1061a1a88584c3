import type { Code } from '@skep/core/errors/codes.ts';
import { memberAt, resultOf, withId, type Request, type Response } from '../../message/json-rpc.ts';
import { isLegacyVersion, isOlder } from '../../message/protocol-version.ts';
import { findPath, rawAt, splice } from '../../message/raw-json.ts';
import type { Waiter } from './peer.ts';

/** What a client waits for when it initializes. `version` is the revision agreed with this client. */
export interface Newcomer {
  readonly request: Request;
  welcome(reply: Response, version: string): void;
  refuse(reply: Response): void;
  fail(code: Code): void;
}

type State =
  | { readonly is: 'none' }
  | { readonly is: 'pending'; readonly waiting: Newcomer[] }
  | { readonly is: 'done'; readonly result: string; readonly version: string };

const FALLBACK_VERSION = '2025-03-26';
const PROTOCOL_VERSION = ['protocolVersion'];

/**
 * One process performs one handshake, whoever comes first; later clients get its result under their own id
 * (spec run-proxy §1.3.3). A failed handshake is not kept.
 */
export class Handshake {
  #state: State = { is: 'none' };
  #announced = false;

  /** Joins the handshake; `begin` sends the request to the server and is called for the first newcomer only. */
  join(newcomer: Newcomer, begin: (request: Request, waiter: Waiter) => void): void {
    const state = this.#state;
    if (state.is === 'done') welcomeLater(newcomer, state.result, state.version);
    else if (state.is === 'pending') state.waiting.push(newcomer);
    else {
      const waiting = [newcomer];
      this.#state = { is: 'pending', waiting };
      begin(newcomer.request, this.#waiter(waiting));
    }
  }

  /** True for the first `notifications/initialized` after a handshake: only that one goes to the server. */
  announce(): boolean {
    const first = this.#state.is === 'done' && !this.#announced;
    if (first) this.#announced = true;
    return first;
  }

  /** Forgets the handshake; the next newcomer begins another. */
  reset(): void {
    this.#state = { is: 'none' };
    this.#announced = false;
  }

  #waiter(waiting: readonly Newcomer[]): Waiter {
    const isCurrent = (): boolean => this.#state.is === 'pending' && this.#state.waiting === waiting;
    return {
      carries: false,
      send() {},
      finish: (reply) => {
        const span = reply.failed ? undefined : findPath(reply.text, ['result']);
        if (span === undefined) {
          if (isCurrent()) this.reset();
          for (const newcomer of waiting) newcomer.refuse(withId(reply, newcomer.request.id));
          return;
        }
        const result = rawAt(reply.text, span);
        const version = versionOf(reply.value['result']);
        if (isCurrent()) this.#state = { is: 'done', result, version };
        const [first, ...others] = waiting;
        first?.welcome(resultOf(first.request.id, result), version);
        for (const newcomer of others) welcomeLater(newcomer, result, version);
      },
      fail: (code) => {
        if (isCurrent()) this.reset();
        for (const newcomer of waiting) newcomer.fail(code);
      },
    };
  }
}

const versionOf = (result: unknown): string => {
  const version = memberAt(result, PROTOCOL_VERSION);
  return typeof version === 'string' ? version : FALLBACK_VERSION;
};

/** A later client that asks for an older revision we know gets it; one that asks for a newer gets what was agreed. */
const welcomeLater = (newcomer: Newcomer, result: string, agreed: string): void => {
  const { request } = newcomer;
  const wanted = memberAt(request.value, ['params', 'protocolVersion']);
  const span = findPath(result, PROTOCOL_VERSION);
  if (
    typeof wanted !== 'string' ||
    !isLegacyVersion(wanted) ||
    !isOlder(wanted, agreed) ||
    span === undefined
  ) {
    newcomer.welcome(resultOf(request.id, result), agreed);
    return;
  }
  const own = splice(result, [{ span, text: JSON.stringify(wanted) }]);
  newcomer.welcome(resultOf(request.id, own), wanted);
};
