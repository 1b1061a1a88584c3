import type { Code } from '@skep/core/errors/codes.ts';
import { requestOf, type Request } from '../../message/json-rpc.ts';
import type { Peer } from '../port.ts';

/** Asks the server; `done` hears once whether it agreed. */
export type Trip = (done: (succeeded: boolean) => void) => void;

/** What a client wants done about one URI. Exactly one of the last three is called, once. */
export interface Errand {
  readonly peer: Peer;
  readonly trip: Trip;
  /** No trip to the server is needed. */
  alone(): void;
  fail(code: Code): void;
}

/** Where a trip is needed, gives back what is to be done when the server has agreed. */
type Act = (holders: Set<Peer>) => (() => void) | undefined;

interface Work {
  readonly errand: Errand;
  readonly act: Act;
}

interface Subject {
  readonly holders: Set<Peer>;
  /** Work that waits for the trip under way. */
  queue: Work[];
  underWay: boolean;
  draining: boolean;
}

/** Different URIs that all clients together may hold. */
const MAX_SUBSCRIPTIONS = 10_000;
const MAX_URI_CHARACTERS = 8 * 1024;
/** Of a request that waits for another one. */
const KEPT_CHARACTERS = 4 * 1024;
/** Errands that wait for another one on their URI: of all clients, and of one. */
const MAX_WAITING = 4096;
const MAX_WAITING_OF_PEER = MAX_WAITING / 4;

/**
 * Who subscribed to which resource. The server hears of the first subscriber and of the last unsubscriber only
 * (docs/behaviour/proxy.md#messages-of-the-server). Work on one URI is done one after another.
 */
export class Subscriptions {
  readonly #subjects = new Map<string, Subject>();
  /** Peers that left while their work was still waiting. */
  readonly #departed = new WeakSet<Peer>();
  /** Errands that wait, by client. */
  readonly #waiting = new Map<Peer, number>();
  #waitingOfAll = 0;

  /** Makes the trip, or none when others hold the URI; fails with `proxy/busy` over the limits. */
  subscribe(uri: string, errand: Errand): void {
    if (
      uri.length > MAX_URI_CHARACTERS ||
      (!this.#subjects.has(uri) && this.#subjects.size >= MAX_SUBSCRIPTIONS)
    ) {
      errand.fail('proxy/busy');
      return;
    }
    const { peer } = errand;
    this.#inTurn(uri, errand, (holders) => {
      if (this.#departed.has(peer)) return undefined;
      if (holders.size === 0) return () => void holders.add(peer);
      holders.add(peer);
      return undefined;
    });
  }

  /** Makes the trip, or none when others remain or the peer held nothing. */
  unsubscribe(uri: string, errand: Errand): void {
    this.#inTurn(uri, errand, (holders) => {
      const isLast = holders.delete(errand.peer) && holders.size === 0;
      return isLast ? () => {} : undefined;
    });
  }

  /** The URIs that the departing `peer` holds; it will hold no others. */
  leave(peer: Peer): readonly string[] {
    this.#departed.add(peer);
    return [...this.#subjects].filter(([, { holders }]) => holders.has(peer)).map(([uri]) => uri);
  }

  /** Subscribers of `uri`, or of a resource that `uri` lies beneath (MCP: an update may name a sub-resource). */
  holdersOf(uri: string): ReadonlySet<Peer> {
    const found = new Set<Peer>(this.#subjects.get(uri)?.holders);
    for (const [subscribed, { holders }] of this.#subjects) {
      const folder = subscribed.endsWith('/') ? subscribed : `${subscribed}/`;
      if (uri.startsWith(folder)) for (const peer of holders) found.add(peer);
    }
    return found;
  }

  /** The server is gone: what waits for it hears so. */
  failWaiting(code: Code): void {
    const waiting = [...this.#subjects.values()].flatMap((subject) => subject.queue.splice(0));
    this.#waiting.clear();
    this.#waitingOfAll = 0;
    for (const { errand } of waiting) errand.fail(code);
  }

  clear(): void {
    this.#subjects.clear();
  }

  #inTurn(uri: string, errand: Errand, act: Act): void {
    const subject = this.#subjects.get(uri) ?? {
      holders: new Set(),
      queue: [],
      underWay: false,
      draining: false,
    };
    if (subject.underWay && !this.#hasRoomFor(errand.peer)) {
      errand.fail('proxy/busy');
      return;
    }
    this.#subjects.set(uri, subject);
    subject.queue.push({ errand, act });
    this.#count(errand.peer, 1);
    this.#drain(uri, subject);
  }

  /** One after another; a loop, because what fails at once goes on at once, thousands of times. */
  #drain(uri: string, subject: Subject): void {
    if (subject.draining) return;
    subject.draining = true;
    while (!subject.underWay) {
      const work = subject.queue.shift();
      if (work === undefined) break;
      this.#count(work.errand.peer, -1);
      const { errand, act } = work;
      const learn = act(subject.holders);
      if (learn === undefined) {
        errand.alone();
        continue;
      }
      subject.underWay = true;
      errand.trip((succeeded) => {
        if (succeeded) learn();
        subject.underWay = false;
        this.#drain(uri, subject);
      });
    }
    subject.draining = false;
    const isOver = !subject.underWay && subject.holders.size === 0;
    if (isOver && this.#subjects.get(uri) === subject) this.#subjects.delete(uri);
  }

  /** What a session leaves behind is always taken. */
  #hasRoomFor(peer: Peer): boolean {
    const isRoom = this.#waitingOfAll < MAX_WAITING && (this.#waiting.get(peer) ?? 0) < MAX_WAITING_OF_PEER;
    return isRoom || this.#departed.has(peer);
  }

  #count(peer: Peer, change: number): void {
    const count = (this.#waiting.get(peer) ?? 0) + change;
    this.#waitingOfAll += change;
    if (count === 0) this.#waiting.delete(peer);
    else this.#waiting.set(peer, count);
  }
}

/** A request about `uri` that may have to wait, and is not kept then for what else it says. */
export function shortForm(request: Request, uri: string): Request {
  const { id, method, text } = request;
  return text.length <= KEPT_CHARACTERS ? request : requestOf(id, method, { uri });
}
