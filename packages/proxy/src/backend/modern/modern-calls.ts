import { randomUUID } from 'node:crypto';
import type { Code } from '@skep/core/errors/codes.ts';
import { hasCode, SkepError } from '@skep/core/errors/skep-error.ts';
import type { Clock } from '@skep/core/time/clock.ts';
import { withoutEnvelope } from '../../message/envelope.ts';
import {
  errorOf,
  memberAt,
  requestOf,
  type JsonObject,
  type Request,
  type Response,
} from '../../message/json-rpc.ts';
import { METHODS } from '../../message/methods.ts';
import { RepeatedArguments } from '../../message/param-headers.ts';
import { DEAF, saidBy, told, type BackendPort, type Peer, type Waiter } from '../port.ts';
import { oldestOfMost } from './give-way.ts';
import { HeldCall, type Asking } from './held-call.ts';
import { Listens } from './listens.ts';
import { discovered, streamEnd } from './modern-form.ts';

/** Calls that wait for their client's next request; the oldest of the principal with most gives way. */
const MAX_WAITING = 1024;

/**
 * Requests of modern clients, to a server of either family: one of their own gets them as they are, a legacy one in its
 * form (decision 0335, docs/behaviour/proxy.md#two-families).
 */
export class ModernCalls {
  readonly #port: BackendPort;
  readonly #clock: Clock;
  readonly #listens: Listens;
  /** What to do when the client of a request has gone. */
  readonly #endings = new Map<Peer, () => void>();
  /** Streams that say what concerns everybody, with how to end them. */
  readonly #streams = new Map<Peer, () => void>();
  readonly #repeated = new RepeatedArguments();
  /** Calls without a client that waits, by the `requestState` of its next request. */
  readonly #waiting = new Map<string, HeldCall>();

  constructor(port: BackendPort, clock: Clock) {
    this.#port = port;
    this.#clock = clock;
    this.#listens = new Listens(port);
  }

  /** `peer` is a call, for this request alone. The waiter hears exactly one `finish` or `fail`. */
  request(peer: Peer, request: Request, waiter: Waiter): void {
    let isOver = false;
    this.#endings.set(peer, () => {
      isOver = true;
    });
    const asking = {
      peer,
      request,
      waiter: this.#learning(
        request,
        once(waiter, () => this.#over(peer)),
      ),
    };
    this.#port.meet(peer).then(
      (met) => {
        if (isOver) return;
        const wrong = this.#mismatchIn(request, peer);
        if (wrong !== undefined) asking.waiter.finish(mismatch(request.id, wrong));
        else if (met.era === 'modern') this.#asIs(asking);
        else this.#translated(asking, met.agreed);
      },
      (error: unknown) => asking.waiter.fail(codeOf(error), saidBy(error)),
    );
  }

  /** What tools want repeated in headers is in their lists. */
  #learning({ method }: Request, waiter: Waiter): Waiter {
    if (method !== 'tools/list') return waiter;
    return {
      get carries() {
        return waiter.carries;
      },
      send: (message) => waiter.send(message),
      finish: (reply) => {
        this.#repeated.learn(reply);
        waiter.finish(reply);
      },
      fail: (code, said) => waiter.fail(code, said),
    };
  }

  #mismatchIn(request: Request, { headers }: Peer): string | undefined {
    if (request.method !== 'tools/call' || headers === undefined) return undefined;
    return this.#repeated.mismatchIn(request, headers);
  }

  /** The client of that request has gone, which cancels it. */
  gone(peer: Peer): void {
    const end = this.#endings.get(peer);
    this.#over(peer);
    end?.();
  }

  /** Ends in good order what else has no end. */
  endStreams(): void {
    for (const [peer, end] of this.#streams) {
      const leave = this.#endings.get(peer);
      end();
      leave?.();
    }
  }

  #over(peer: Peer): void {
    this.#endings.delete(peer);
    this.#streams.delete(peer);
  }

  #asIs({ peer, request, waiter }: Asking): void {
    const { id, method } = request;
    this.#endings.set(peer, () => this.#port.gone(peer));
    if (method === METHODS.listen) this.#streams.set(peer, () => waiter.finish(streamEnd(id)));
    this.#port.request(peer, request, waiter);
  }

  #translated(asking: Asking, agreed: JsonObject): void {
    const { peer, request, waiter } = asking;
    if (request.method === METHODS.discover) waiter.finish(discovered(request.id, agreed));
    else if (request.method === METHODS.listen) {
      const { id } = request;
      const leave = this.#listens.open(peer, request, waiter, agreed);
      if (!this.#endings.has(peer)) return;
      this.#endings.set(peer, leave);
      this.#streams.set(peer, () => waiter.finish(streamEnd(id)));
    } else if (typeof memberAt(request.value, ['params', 'requestState']) === 'string') this.#resume(asking);
    else this.#begin(asking, agreed);
  }

  #begin(asking: Asking, agreed: JsonObject): void {
    const { peer, request } = asking;
    const call = new HeldCall({
      port: this.#port,
      clock: this.#clock,
      peer,
      method: request.method,
      waitUnder: (held) => this.#waitUnder(held),
      over: (held) => this.#forget(held),
    });
    call.attach(asking);
    this.#endings.set(peer, () => call.gone(peer));
    const send = (): void => {
      // Its client may have gone while the server took the level.
      if (this.#endings.has(peer)) this.#port.request(peer, withoutEnvelope(request), call);
    };
    const { logLevel: level } = peer;
    if (level === undefined || memberAt(agreed, ['capabilities', 'logging']) === undefined) send();
    else this.#port.request(peer, requestOf('0', METHODS.setLogLevel, { level }), told(DEAF, send));
  }

  /** A call is found by nobody but the principal who made it, and by its state once. */
  #resume(asking: Asking): void {
    const { peer, request } = asking;
    const state = String(memberAt(request.value, ['params', 'requestState']));
    const call = this.#waiting.get(state);
    if (call?.principal !== peer.key || call.method !== request.method) {
      asking.waiter.fail('proxy/state-unknown');
      return;
    }
    this.#waiting.delete(state);
    this.#endings.set(peer, () => call.gone(peer));
    call.resume(asking);
  }

  #waitUnder(call: HeldCall): string {
    const state = randomUUID();
    this.#waiting.set(state, call);
    if (this.#waiting.size > MAX_WAITING)
      oldestOfMost([...this.#waiting.values()], ({ principal }) => principal)?.abandon();
    return state;
  }

  #forget(call: HeldCall): void {
    for (const [state, waiting] of this.#waiting) if (waiting === call) this.#waiting.delete(state);
  }
}

/** As for the headers that every request has (MCP 2026-07-28, Streamable HTTP). */
function mismatch(id: string, header: string): Response {
  return errorOf(id, { code: -32020, message: 'Header does not match the request', data: { header } });
}

/** `waiter` until its first end, of which `then` is told. */
function once(waiter: Waiter, then: () => void): Waiter {
  let isOver = false;
  const end = (word: () => void): void => {
    if (isOver) return;
    isOver = true;
    then();
    word();
  };
  return {
    get carries() {
      return !isOver && waiter.carries;
    },
    send(message) {
      if (!isOver) waiter.send(message);
    },
    finish: (reply) => end(() => waiter.finish(reply)),
    fail: (code, said) => end(() => waiter.fail(code, said)),
  };
}

/** Why a server could not be met. It has heard nothing of the request by then, which may be sent again. */
function codeOf(error: unknown): Code {
  if (hasCode(error, 'proxy/backend-lost')) return 'proxy/backend-away';
  return error instanceof SkepError && error.code.startsWith('proxy/') ? error.code : 'proxy/bad-gateway';
}
