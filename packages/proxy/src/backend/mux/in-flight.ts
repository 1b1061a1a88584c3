import type { Code } from '@skep/core/errors/codes.ts';
import type { Clock, Timer } from '@skep/core/time/clock.ts';
import { withId, withToken, type Request, type RequestHead } from '../../message/json-rpc.ts';
import { METHODS } from '../../message/methods.ts';
import type { Peer, Waiter } from '../port.ts';

/** More unanswered requests than this are refused. */
const MAX_CALLS = 4096;
/** No session takes more of them than this, nor a principal without one; clients do send some hundreds at once. */
const MAX_CALLS_OF_SESSION = MAX_CALLS / 4;
/** All sessions of one principal leave the rest to others. */
const MAX_CALLS_OF_SESSIONS = MAX_CALLS - MAX_CALLS_OF_SESSION;
/** All clients without a session together leave the other half to sessions. */
const MAX_CALLS_WITHOUT_SESSION = MAX_CALLS / 2;

/** How long a handshake may go without an answer, at least. */
const HANDSHAKE_MS = 60_000;

export const PROGRESS_TOKEN = ['params', '_meta', 'progressToken'];

/** One request on its way to the server. Its body has gone to the server and is not kept. */
export interface Flight {
  /** The id on the link; also its progress token there. Raw JSON text of an integer. */
  readonly id: string;
  /** The same as a number. */
  readonly number: number;
  readonly peer: Peer;
  readonly request: RequestHead;
  readonly waiter: Waiter;
  /** The client's progress token as raw JSON text. */
  readonly token: string | undefined;
  readonly timer: Timer;
  /** Requests of the server to this client that are still open; the clock stands while there are any. */
  holds: number;
}

export interface InFlightOptions {
  readonly clock: Clock;
  readonly timeoutMs: number;
  /** After this number come those of requests; 0 by default. */
  readonly lastId?: number | undefined;
  onExpired(flight: Flight): void;
}

/**
 * Every unanswered request, under an id of our own that is unique for the life of the proxy: clients may use the same
 * ids, even twice at the same time, and never hear each other's answers (docs/behaviour/proxy.md#ids).
 */
export class InFlight {
  readonly #options: InFlightOptions;
  /** By the remainder of their ids. A map would be made anew all the time, and keep what it held until a full collection. */
  readonly #flights: (Flight | undefined)[] = [];
  #size = 0;
  #oneOffs = 0;
  /** Of calls and listeners, which are as many as their principal wants. */
  readonly #ofPrincipals = new Map<string, number>();
  /** Of all sessions of a principal. */
  readonly #ofSessions = new Map<string, number>();
  #last: number;

  constructor(options: InFlightOptions) {
    this.#options = options;
    this.#last = options.lastId ?? 0;
  }

  get size(): number {
    return this.#size;
  }

  /** True when `peer` may have one more: no client can take the places of all others. */
  hasRoomFor(peer: Peer): boolean {
    if (this.#size >= MAX_CALLS) return false;
    if (peer.kind === 'proxy') return true;
    if (isOneOff(peer) && this.#oneOffs >= MAX_CALLS_WITHOUT_SESSION) return false;
    const { principal } = peer;
    if (principal !== undefined && (this.#ofSessions.get(principal) ?? 0) >= MAX_CALLS_OF_SESSIONS)
      return false;
    const own = isOfPrincipal(peer) ? (this.#ofPrincipals.get(peer.key) ?? 0) : peer.unanswered;
    return own < MAX_CALLS_OF_SESSION;
  }

  /** Registers a request; `token` is its progress token as raw JSON text. Expects that there is room. */
  add(peer: Peer, { id: clientId, method }: RequestHead, waiter: Waiter, token: string | undefined): Flight {
    const number = this.#nextNumber();
    const flight: Flight = {
      id: String(number),
      number,
      peer,
      request: { id: clientId, method },
      waiter,
      token,
      timer: this.#options.clock.after(patienceFor(method, this.#options), () => this.#expire(flight)),
      // What is listened to has no end.
      holds: method === METHODS.listen ? 1 : 0,
    };
    this.#flights[number % MAX_CALLS] = flight;
    this.#count(peer, 1);
    return flight;
  }

  get(id: string): Flight | undefined {
    const flight = this.#flights[Number(id) % MAX_CALLS];
    return flight?.id === id ? flight : undefined;
  }

  /** Removes and returns; only who took a flight may answer its waiter. */
  take(id: string): Flight | undefined {
    const flight = this.get(id);
    if (flight === undefined) return undefined;
    this.#flights[flight.number % MAX_CALLS] = undefined;
    this.#count(flight.peer, -1);
    flight.timer.cancel();
    return flight;
  }

  /** The latest request of `peer` under the client's own id (raw text). */
  ofPeer(peer: Peer, clientId: string): Flight | undefined {
    return this.of(peer).findLast(({ request }) => request.id === clientId);
  }

  /**
   * The one client whose requests are unanswered: `none` when there is no such request, `several` when the server could mean
   * any of them. What the proxy itself asks does not count.
   */
  caller(): Peer | 'none' | 'several' {
    let only: Peer | 'none' = 'none';
    for (const flight of this.#flights) {
      if (flight === undefined || flight.peer === only || isOfProxy(flight.peer)) continue;
      if (flight.request.method === METHODS.listen) continue;
      if (only !== 'none') return 'several';
      only = flight.peer;
    }
    return only;
  }

  /**
   * Where only calls of one principal are unanswered, the one of them whose client is there: a server that waits for an answer
   * hardly asks another question meanwhile, and clients may never come back.
   */
  onlyFree(): Flight | undefined {
    const flights = this.#flights.filter(
      (flight) => flight !== undefined && !isOfProxy(flight.peer) && flight.request.method !== METHODS.listen,
    );
    const isOne = flights.every(
      (flight) => flight?.peer.kind === 'call' && flight.peer.key === flights[0]?.peer.key,
    );
    const [free, ...others] = flights.filter((flight) => flight?.waiter.attended !== false);
    return isOne && others.length === 0 ? free : undefined;
  }

  /** The requests of one peer, oldest first. */
  of(peer: Peer): readonly Flight[] {
    return this.#oldestFirst().filter((flight) => flight.peer === peer);
  }

  /** Progress, or an answer of the client to the server, proves life: the clock begins anew. */
  touch(flight: Flight): void {
    if (flight.holds === 0) flight.timer.restart();
  }

  failAll(code: Code): void {
    for (const { id } of this.#oldestFirst()) this.take(id)?.waiter.fail(code);
  }

  /** The next one whose place is free; while there is room there is such a place. */
  #nextNumber(): number {
    do this.#last += 1;
    while (this.#flights[this.#last % MAX_CALLS] !== undefined);
    return this.#last;
  }

  #oldestFirst(): readonly Flight[] {
    return this.#flights.filter((flight) => flight !== undefined).sort((a, b) => a.number - b.number);
  }

  #count(peer: Peer, change: number): void {
    this.#size += change;
    if (peer.kind !== 'proxy') peer.unanswered += change;
    if (isOneOff(peer)) this.#oneOffs += change;
    if (peer.principal !== undefined) addTo(this.#ofSessions, peer.principal, change);
    if (isOfPrincipal(peer)) addTo(this.#ofPrincipals, peer.key, change);
  }

  #expire(flight: Flight): void {
    if (flight.holds === 0 && this.take(flight.id) !== undefined) this.#options.onExpired(flight);
  }
}

/** What is zero is not kept. */
function addTo(counts: Map<string, number>, key: string, change: number): void {
  const count = (counts.get(key) ?? 0) + change;
  if (count === 0) counts.delete(key);
  else counts.set(key, count);
}

/** Milliseconds. A server is asked once to begin, and may take longer to start than any call of it may. */
export function patienceFor(
  method: string | undefined,
  { timeoutMs }: Pick<InFlightOptions, 'timeoutMs'>,
): number {
  return method === METHODS.initialize ? Math.max(timeoutMs, HANDSHAKE_MS) : timeoutMs;
}

function isOfProxy({ kind }: Peer): boolean {
  return kind === 'proxy' || kind === 'errand';
}

function isOneOff({ kind }: Peer): boolean {
  return kind === 'one-off' || kind === 'call' || kind === 'errand';
}

function isOfPrincipal({ kind }: Peer): boolean {
  return kind === 'call' || kind === 'errand' || kind === 'listener';
}

/** The request as the server gets it: our id, and our token if the client asked for progress. */
export function onLink(asked: Request, flight: Flight): string {
  const request = withId(asked, flight.id);
  return flight.token === undefined ? request.text : withToken(request, PROGRESS_TOKEN, flight.id).text;
}
