import type { Credentials } from '../call/call.ts';
import { randomInt, randomUUID } from 'node:crypto';
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
  /** Its id, where it began at another replica. */
  readonly key?: string;
}

interface SessionOptions extends Opening {
  readonly isReplicated: boolean;
  readonly clock: Clock;
  readonly budget: ReplayBudget;
  readonly forgotten: (session: Session) => void;
}

/** What a stream is for: the answer to one request, or what the server says unasked. */
export type StreamKind = 'answer' | 'unasked';

const LETTER: Readonly<Record<StreamKind, string>> = { answer: 'a', unasked: 'u' };
/** Letters and digits in which the streams of one replica differ from those of another. */
const MARK_LENGTH = 8;

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
  renewed?: Peer['renewed'];
  /** The stream of its latest GET. */
  listener: (Listener & { readonly stream: EventStream }) | undefined;
  lastSeen: number;
  readonly #clock: Clock;
  readonly #forgotten: (session: Session) => void;
  readonly #streams = new Map<string, EventStream>();
  readonly #mark: string;
  #lastStream = 0;

  constructor(options: SessionOptions) {
    this.key = options.key ?? randomUUID();
    this.#mark = options.isReplicated ? newMark() : '';
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
  openStream(kind: StreamKind): EventStream {
    const stream = this.newStream(kind);
    if (stream.id !== undefined) this.#streams.set(stream.id, stream);
    return stream;
  }

  /** A stream of which no more is known than what it says. */
  newStream(kind: StreamKind): EventStream {
    const number = (this.#lastStream += 1).toString(36);
    const id = this.#mark === '' ? number : `${this.#mark}${LETTER[kind]}${number}`;
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

  /** True for the name of a stream whose answer only another replica can have. */
  isElsewhere(id: string): boolean {
    const isMarked = this.#mark !== '' && !id.startsWith(this.#mark);
    return isMarked && id.charAt(MARK_LENGTH) === LETTER.answer;
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
  readonly backend: Pick<BackendPort, 'leave' | 'replicated'>;
}

/**
 * All sessions of one proxy. None survives the proxy, where no other replica serves it: clients initialize again
 * (docs/behaviour/proxy.md#sessions).
 */
export class Sessions {
  readonly #options: SessionsOptions;
  readonly #sessions = new Map<string, Session>();
  readonly #budget: ReplayBudget = { characters: 0 };
  readonly #sweep: Timer;
  /** Told now and then of sessions that somebody listens to or waits in. */
  onInUse: (session: Session) => void = () => {};

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
      isReplicated: this.#options.backend.replicated !== undefined,
      clock: this.#options.clock,
      budget: this.#budget,
      forgotten: (over) => this.letGo(over),
    });
    this.#sessions.set(session.key, session);
    return session;
  }

  /** The session of that id, whosever it is. */
  get(id: string): Session | undefined {
    return this.#sessions.get(id);
  }

  /** Those that there are now. */
  all(): readonly Session[] {
    return [...this.#sessions.values()];
  }

  /** It is in use, also where that is known from another replica. */
  use(session: Session): void {
    session.lastSeen = this.#options.clock.elapsed();
  }

  /** The session of that id, if it is this principal's. Counts as use. */
  find(id: string, principal: string): Session | undefined {
    const session = this.#sessions.get(id);
    if (session?.principal !== principal) return undefined;
    if (this.isOver(session)) {
      this.letGo(session);
      return undefined;
    }
    this.use(session);
    return session;
  }

  /** Nobody has used it for as long as a session lives. */
  isOver(session: Session): boolean {
    const { clock, sessionTtlMs } = this.#options;
    return this.#isIdle(session) && clock.elapsed() - session.lastSeen > sessionTtlMs;
  }

  /** Its client has ended it. */
  end(session: Session): void {
    if (!this.#forget(session)) return;
    this.#options.backend.leave(session);
    session.close();
  }

  /** It is over here; where other replicas serve it, it may go on there. */
  letGo(session: Session): void {
    const { backend } = this.#options;
    if (!this.#forget(session)) return;
    if (backend.replicated === undefined) backend.leave(session);
    else backend.replicated.letGo(session);
    session.close();
  }

  letGoOfAll(): void {
    for (const session of this.#sessions.values()) this.letGo(session);
  }

  #forget(session: Session): boolean {
    return this.#sessions.get(session.key) === session && this.#sessions.delete(session.key);
  }

  /** Ends every GET stream; the sessions and their calls stay. */
  endStandaloneStreams(): void {
    for (const session of this.#sessions.values()) session.listener?.stream.end();
  }

  close(): void {
    this.#sweep.cancel();
    this.letGoOfAll();
  }

  #expire(): void {
    for (const session of this.#sessions.values()) {
      if (this.isOver(session)) this.letGo(session);
      else if (!this.#isIdle(session)) {
        this.use(session);
        this.onInUse(session);
      }
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
    if (over !== undefined) this.letGo(over);
    return over !== undefined;
  }
}

/** Two replicas that serve a session at once hardly have the same. */
function newMark(): string {
  const part = (): string =>
    randomInt(36 ** 4)
      .toString(36)
      .padStart(MARK_LENGTH / 2, '0');
  return part() + part();
}
