import type { Peer } from './peer.ts';

/** Asks the server; `done` hears once whether it agreed. */
export type Trip = (done: (succeeded: boolean) => void) => void;

interface Subject {
  readonly holders: Set<Peer>;
  /** Work that waits for the trip under way; undefined while none is. */
  queue: (() => void)[] | undefined;
}

/** Different URIs that all clients together may hold. */
const LIMIT = 10_000;
const URI_LIMIT = 8 * 1024;

/**
 * Who subscribed to which resource. The server hears of the first subscriber and of the last unsubscriber only
 * (spec run-proxy §1.3.6). Work on one URI is done one after another.
 */
export class Subscriptions {
  readonly #subjects = new Map<string, Subject>();
  /** Peers that left while their work was still waiting. */
  readonly #departed = new WeakSet<Peer>();

  /** Calls `alone` when no trip to the server is needed, else makes the trip; refuses over the limit. */
  subscribe(uri: string, peer: Peer, trip: Trip, alone: () => void): boolean {
    if (uri.length > URI_LIMIT || (!this.#subjects.has(uri) && this.#subjects.size >= LIMIT)) return false;
    this.#inTurn(uri, (subject, next) => {
      if (this.#departed.has(peer)) {
        alone();
        next();
        return;
      }
      if (subject.holders.size > 0) {
        subject.holders.add(peer);
        alone();
        next();
        return;
      }
      trip((succeeded) => {
        if (succeeded) subject.holders.add(peer);
        next();
      });
    });
    return true;
  }

  /** Calls `alone` when others remain or the peer held nothing, else makes the trip. */
  unsubscribe(uri: string, peer: Peer, trip: Trip, alone: () => void): void {
    this.#inTurn(uri, (subject, next) => {
      const held = subject.holders.delete(peer);
      if (!held || subject.holders.size > 0) {
        alone();
        next();
        return;
      }
      trip(() => next());
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

  clear(): void {
    this.#subjects.clear();
  }

  #inTurn(uri: string, work: (subject: Subject, next: () => void) => void): void {
    const subject = this.#subjects.get(uri) ?? { holders: new Set(), queue: undefined };
    this.#subjects.set(uri, subject);
    const run = (): void => work(subject, () => this.#next(uri, subject));
    if (subject.queue === undefined) {
      subject.queue = [];
      run();
    } else subject.queue.push(run);
  }

  #next(uri: string, subject: Subject): void {
    const waiting = subject.queue?.shift();
    if (waiting !== undefined) {
      waiting();
      return;
    }
    subject.queue = undefined;
    if (subject.holders.size === 0 && this.#subjects.get(uri) === subject) this.#subjects.delete(uri);
  }
}
