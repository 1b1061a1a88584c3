import type { IncomingMessage, OutgoingHttpHeaders } from 'node:http';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import type { Clock, Timer } from '@skep/core/time/clock.ts';
import type { Call } from '../../call/call.ts';
import { idOf } from '../../message/json-rpc.ts';
import { METHODS } from '../../message/methods.ts';
import { patienceFor } from '../mux/in-flight.ts';
import type { RelayedSessions } from './relayed-sessions.ts';
import { leave, MAX_REPEATED_BYTES, type Sent, type Upstream } from './upstream.ts';

/** What a server may take to hear that nobody waits for its answer. */
const TELL_WITHIN_MS = 5_000;

/** How long a server may take. */
interface Limit {
  /** Until its answer begins; undefined for one that has no end. */
  readonly patienceMs: number | undefined;
  /** The request that its session is told of when that is over; raw JSON text of its id. */
  readonly cancels: string | undefined;
}

interface Asked {
  readonly url: URL;
  readonly path: string;
  readonly method: string;
  /** In lower case. */
  readonly headers: OutgoingHttpHeaders;
  /** The session that its client names. */
  readonly session: string | undefined;
  readonly limit: Limit;
}

/** Who hears once what comes of it; not before it was asked. */
interface Waiting {
  readonly answered: (reply: IncomingMessage) => void;
  /** As `Upstream.send` rejects, and with `proxy/timeout`. */
  readonly failed: (error: unknown) => void;
}

interface Services {
  readonly upstream: Upstream;
  readonly sessions: RelayedSessions;
  readonly clock: Pick<Clock, 'after'>;
}

/**
 * One request to a server on behalf of a client: sent once more where the server has forgotten its session, and for no longer
 * than its answer may take to begin.
 */
export class Asking {
  /** Resolves when the server has taken the body, or will not. */
  get taken(): Promise<void> {
    return this.#taken.promise;
  }

  readonly #taken = Promise.withResolvers<void>();
  readonly #asked: Asked;
  readonly #services: Services;
  readonly #waiting: Waiting;
  readonly #limit: Timer | undefined;
  /** As long as it may be sent. */
  #body: Buffer | undefined;
  #name: string | undefined;
  #current: Sent;
  #isLate = false;
  #isOver = false;

  constructor(asked: Asked, body: Buffer, services: Services, waiting: Waiting) {
    this.#asked = asked;
    this.#services = services;
    this.#waiting = waiting;
    this.#body = body;
    const { method, session, limit } = asked;
    const { patienceMs } = limit;
    const isKnown = session !== undefined && services.sessions.has(session);
    this.#current = this.#send();
    void this.#current.taken.then(this.#taken.resolve);
    const isRepeated = method === 'POST' || (method === 'GET' && services.sessions.areShared);
    const canRepeat = isKnown && isRepeated && body.length <= MAX_REPEATED_BYTES;
    if (!canRepeat) this.#body = undefined;
    this.#limit = patienceMs === undefined ? undefined : services.clock.after(patienceMs, () => this.#end());
    const fail = (error: unknown): void => this.#failed(error);
    this.#current.reply.then((first) => {
      if (!canRepeat || first.statusCode !== 404) this.#answered(first);
      else this.#again(first).then((last) => this.#answered(last), fail);
    }, fail);
  }

  abort(): void {
    this.#isOver = true;
    this.#limit?.cancel();
    this.#current.abort();
  }

  #answered(last: IncomingMessage): void {
    this.#limit?.cancel();
    if (this.#isLate) last.destroy();
    else this.#waiting.answered(last);
  }

  #failed(error: unknown): void {
    this.#limit?.cancel();
    if (!this.#isLate) this.#waiting.failed(error);
  }

  #send(): Sent {
    const { url, path, method, session, headers } = this.#asked;
    this.#name = session && this.#services.sessions.nameOf(session);
    const named = this.#name === session ? headers : { ...headers, 'mcp-session-id': this.#name };
    return this.#services.upstream.send(url, { method, path, headers: named, body: this.#body });
  }

  /** The server has forgotten the session, unless it begins it anew. */
  async #again(first: IncomingMessage): Promise<IncomingMessage> {
    const { session, headers, method } = this.#asked;
    if (session === undefined || this.#name === undefined) return first;
    // A stream is no reason to begin a session anew; another replica may have.
    const shown = method === 'POST' ? headers : undefined;
    const isAgain = await this.#services.sessions
      .again(session, this.#name, shown)
      .catch((error: unknown) => {
        leave(first);
        throw error;
      });
    if (!isAgain) return first;
    leave(first);
    if (this.#isOver) throw new SkepError('proxy/client-gone');
    this.#current = this.#send();
    return this.#current.reply;
  }

  #end(): void {
    // Whatever it waits for just now: a token, a handshake, another dial.
    this.#failed(new SkepError('proxy/timeout'));
    this.#isLate = true;
    this.abort();
    // A token may be waited for still; the body is not sent any more.
    this.#taken.resolve();
    const { url, path, headers, limit } = this.#asked;
    const { cancels } = limit;
    if (cancels === undefined || this.#name === undefined) return;
    const body = `{"jsonrpc":"2.0","method":"${METHODS.cancelled}","params":{"requestId":${cancels},"reason":"timeout"}}`;
    const named = { ...headers, 'mcp-session-id': this.#name, 'content-length': Buffer.byteLength(body) };
    const signal = AbortSignal.timeout(TELL_WITHIN_MS);
    // Nobody waits for what it says to that.
    const told = this.#services.upstream.send(url, { method: 'POST', path, headers: named, body, signal });
    told.reply.then(leave, () => {});
  }
}

/** A message has to be answered; streams are opened for as long as they last (docs/behaviour/proxy.md#time-and-cancelling). */
export function limitOf(
  { incoming }: Pick<Call, 'incoming'>,
  { requestTimeoutMs: timeoutMs }: { readonly requestTimeoutMs: number },
): Limit {
  if (incoming === undefined) return { patienceMs: undefined, cancels: undefined };
  const { message, era } = incoming;
  const method = message.kind === 'request' ? message.method : undefined;
  const canHear = era === 'legacy' && method !== METHODS.initialize;
  return {
    patienceMs: method === METHODS.listen ? undefined : patienceFor(method, { timeoutMs }),
    cancels: canHear ? idOf(message) : undefined,
  };
}
