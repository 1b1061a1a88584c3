import type { Credentials } from '../call/call.ts';
import { randomUUID } from 'node:crypto';
import type { BackendPort, Listener, Peer } from '../backend/port.ts';
import type { Ability } from '../message/client-abilities.ts';
import type { Clock, Timer } from '@skep/core/time/clock.ts';
import { opensWithEmptyEvent } from '../message/protocol-version.ts';
import { ReplayBuffer, type ReplayBudget } from './replay.ts';
import { sessionToEnd } from './session-to-end.ts';
import { EventStream, type Resumable } from './stream.ts';

/** More sessions than this are not kept; one gives way (session-to-end.ts). */
const MAX_SESSIONS = 4096;

/** What is known of a client when its session begins. */
export interface Opening {
  readonly principal: string;
  /** The revision agreed with it. */
  readonly version: string;
  readonly abilities: ReadonlySet<Ability>;
}

interface SessionOptions extends Opening {
  readonly clock: Clock;
  readonly budget: ReplayBudget;
  readonly forgotten: (session: Session) => void;
}

/** One initialized client. */
export class Session implements Peer {
  readonly kind = 'session';
  readonly key: string;
  readonly principal: string;
  readonly version: string;
  readonly abilities: ReadonlySet<Ability>;
  readonly replay: ReplayBuffer;
  logLevel: string | undefined;
  unanswered = 0;
  credentials: Credentials | undefined;
  /** The stream of its latest GET. */
  listener: (Listener & { readonly stream: EventStream }) | undefined;
  lastSeen: number;
  readonly #clock: Clock;
  readonly #forgotten: (session: Session) => void;
  readonly #streams = new Map<string, EventStream>();
  #lastStream = 0;

  constructor(options: SessionOptions) {
    this.key = randomUUID();
    this.principal = options.principal;
    this.version = options.version;
    this.abilities = options.abilities;
    this.replay = new ReplayBuffer(options.budget);
    this.#clock = options.clock;
    this.#forgotten = options.forgotten;
    this.lastSeen = options.clock.elapsed();
  }

  forgotten(): void {
    this.#forgotten(this);
  }

  /** A fresh stream that this session's client can resume while it is still said something. */
  openStream(): EventStream {
    const stream = this.newStream();
    if (stream.id !== undefined) this.#streams.set(stream.id, stream);
    return stream;
  }

  /** A stream of which no more is known than what it says. */
  newStream(): EventStream {
    const id = (this.#lastStream += 1).toString(36);
    const resumable: Resumable = {
      id,
      buffer: this.replay,
      emptyFirst: opensWithEmptyEvent(this.version),
    };
    return new EventStream(this.#clock, resumable);
  }

  /** A stream that may still say something. */
  stream(id: string): EventStream | undefined {
    return this.#streams.get(id);
  }

  /** The stream is complete: what it said can be replayed, but it says nothing more. */
  streamDone(stream: EventStream): void {
    if (stream.id !== undefined) this.#streams.delete(stream.id);
  }

  close(): void {
    for (const stream of this.#streams.values()) stream.end();
    this.#streams.clear();
    this.replay.clear();
  }
}

export interface SessionsOptions {
  readonly clock: Clock;
  readonly sessionTtlMs: number;
  /** Hears of sessions that end. */
  readonly backend: Pick<BackendPort, 'leave'>;
}

/** All sessions of one proxy. None survives the proxy: clients initialize again (docs/behaviour/proxy.md#sessions). */
export class Sessions {
  readonly #options: SessionsOptions;
  readonly #sessions = new Map<string, Session>();
  readonly #budget: ReplayBudget = { characters: 0 };
  readonly #sweep: Timer;

  constructor(options: SessionsOptions) {
    this.#options = options;
    this.#sweep = options.clock.every(options.sessionTtlMs / 2, () => this.#expire());
  }

  get size(): number {
    return this.#sessions.size;
  }

  /** Called when an initialize has succeeded, never before. Undefined when all sessions there may be are in use. */
  create(opening: Opening): Session | undefined {
    if (this.#sessions.size >= MAX_SESSIONS && !this.#makeRoom(opening.principal)) return undefined;
    const session = new Session({
      ...opening,
      clock: this.#options.clock,
      budget: this.#budget,
      forgotten: (over) => this.end(over),
    });
    this.#sessions.set(session.key, session);
    return session;
  }

  /** The session of that id, if it is this principal's. Counts as use. */
  find(id: string, principal: string): Session | undefined {
    const session = this.#sessions.get(id);
    if (session?.principal !== principal) return undefined;
    const now = this.#options.clock.elapsed();
    if (this.#isIdle(session) && now - session.lastSeen > this.#options.sessionTtlMs) {
      this.end(session);
      return undefined;
    }
    session.lastSeen = now;
    return session;
  }

  end(session: Session): void {
    if (!this.#sessions.delete(session.key)) return;
    this.#options.backend.leave(session);
    session.close();
  }

  endAll(): void {
    for (const session of this.#sessions.values()) this.end(session);
  }

  /** Ends every GET stream; the sessions and their calls stay. */
  endStandaloneStreams(): void {
    for (const session of this.#sessions.values()) session.listener?.stream.end();
  }

  close(): void {
    this.#sweep.cancel();
    this.endAll();
  }

  #expire(): void {
    const now = this.#options.clock.elapsed();
    for (const session of this.#sessions.values()) {
      if (!this.#isIdle(session)) session.lastSeen = now;
      else if (now - session.lastSeen > this.#options.sessionTtlMs) this.end(session);
    }
  }

  /** Nobody listens and nobody waits for an answer. */
  #isIdle(session: Session): boolean {
    return session.listener?.live !== true && session.unanswered === 0;
  }

  #makeRoom(principal: string): boolean {
    const over = sessionToEnd(this.#sessions.values(), principal, {
      isIdle: (session) => this.#isIdle(session),
      lastSeen: (session) => session.lastSeen,
    });
    if (over !== undefined) this.end(over);
    return over !== undefined;
  }
}
