import type { Log } from '@skep/core/log/log.ts';
import {
  isOfSame,
  nameOf,
  renamed,
  SessionSeal,
  type LiveSession,
  type SharedSession,
} from './sealed-session.ts';
import { MAX_VALUE_CHARACTERS, type SessionStore } from './session-store.ts';

/** What was found of a session. */
export interface Found {
  /** Undefined where there was nothing. */
  readonly text: string | undefined;
  readonly session: SharedSession | undefined;
}

interface SharingOptions {
  readonly store: SessionStore;
  /** Where the server is, without what may be secret of its address. */
  readonly server: string;
  readonly sessionTtlMs: number;
  readonly log: Log;
}

const ENDED: SharedSession = { is: 'ended' };
/** Before somebody else's change of what was found is taken for a store that lies. */
const MOST_TRIES = 5;
/** Sessions that ended while the store was away, and are marked when it is back. */
const MOST_UNMARKED = 4_096;

/** What replicas of one proxy tell each other of sessions (docs/behaviour/proxy.md#many-replicas, decision 0425). */
export class SharedSessions {
  readonly #options: SharingOptions;
  readonly #unmarked = new Set<string>();
  readonly #whenBack: (() => Promise<void>)[] = [];
  #isTelling = false;

  constructor(options: SharingOptions) {
    this.#options = options;
    options.store.onBack(() => void this.#tellAll());
  }

  /** Tells what a store that was away may have lost, or never heard of; never twice at once, however often it comes back. */
  onBack(tell: () => Promise<void>): void {
    this.#whenBack.push(tell);
  }

  /**
   * What is known of the session. What cannot be read is `ended`: nobody may have it. Rejects with `proxy/session-store-away`.
   */
  async find(id: string): Promise<Found> {
    const seal = this.#seal(id);
    const text = await this.#options.store.get(seal.place);
    if (text === undefined) return { text, session: undefined };
    const session = text.length > MAX_VALUE_CHARACTERS ? undefined : seal.open(text);
    if (session === undefined) this.#options.log.warn({}, 'what is stored of a session cannot be read');
    return { text, session: session ?? ENDED };
  }

  /** Of a session that has begun just now. One that is another principal's stays theirs. */
  async begun(id: string, session: LiveSession): Promise<void> {
    await this.#trying(async () => {
      const { text, session: before } = await this.find(id);
      const isTheirs =
        before !== undefined && before.is !== 'ended' && before.principal !== session.principal;
      if (!isTheirs) await this.#replace(id, text, session);
    });
  }

  /**
   * What the server calls a session from now on that it has forgotten: as another replica has begun it anew, or else as `begin` has
   * done; of those that begin it at once one wins. Without `begin` the name that there was. Undefined where it is over. Rejects as
   * `find`.
   */
  async renewed(
    id: string,
    known: LiveSession,
    begin?: () => Promise<string | undefined>,
  ): Promise<string | undefined> {
    const name = nameOf(known);
    const { text, session } = await this.find(id);
    if (session !== undefined && !isOfSame(session, known)) return undefined;
    const theirs = session && nameOf(session);
    if (theirs !== undefined && theirs !== name) return theirs;
    if (begin === undefined) return name;
    const next = await begin();
    if (next === undefined || (await this.#replace(id, text, renamed(known, next)))) return next;
    const { session: winner } = await this.find(id);
    return isOfSame(winner, known) ? nameOf(winner) : undefined;
  }

  /** Its client has ended it. Where the store is away, it is told when it is back. */
  async ended(id: string): Promise<void> {
    if (await this.#trying(() => this.#mark(id))) return;
    const [oldest] = this.#unmarked;
    if (this.#unmarked.size >= MOST_UNMARKED && oldest !== undefined) this.#unmarked.delete(oldest);
    this.#unmarked.add(id);
  }

  /** The same of one that the server did not know either: of what nobody began nothing is written, however often it is ended. */
  async endedUnknown(id: string): Promise<void> {
    await this.#trying(async () => {
      if ((await this.find(id)).text !== undefined) await this.#mark(id);
    });
  }

  /** It is used: it lives on, and is written again where the store has lost it. */
  async used(id: string, session: LiveSession): Promise<void> {
    const { store, sessionTtlMs } = this.#options;
    await this.#trying(async () => {
      if (!(await store.extend(this.#seal(id).place, sessionTtlMs)))
        await this.#replace(id, undefined, session);
    });
  }

  async #mark(id: string): Promise<void> {
    for (let tries = 0; tries < MOST_TRIES; tries += 1) {
      const { text } = await this.find(id);
      if (await this.#replace(id, text, ENDED)) return;
    }
    this.#options.log.warn({}, 'the end of a session could not be shared: Redis changes what was written');
  }

  /** What has ended first, before anybody writes what it knows of that. */
  async #tellAll(): Promise<void> {
    if (this.#isTelling) return;
    this.#isTelling = true;
    try {
      await this.#markAll();
      for (const tell of this.#whenBack) await tell();
    } finally {
      this.#isTelling = false;
    }
  }

  async #markAll(): Promise<void> {
    const ids = [...this.#unmarked];
    this.#unmarked.clear();
    for (const id of ids) await this.ended(id);
  }

  async #replace(id: string, expected: string | undefined, session: SharedSession): Promise<boolean> {
    const { store, sessionTtlMs: ttlMs } = this.#options;
    const seal = this.#seal(id);
    const sealed = seal.seal(session);
    const isShort = sealed.length <= MAX_VALUE_CHARACTERS;
    const value = isShort
      ? sealed
      : seal.seal(session.is === 'open' ? { ...session, body: undefined } : session);
    return value.length <= MAX_VALUE_CHARACTERS && store.replace(seal.place, { expected, value, ttlMs });
  }

  #seal(id: string): SessionSeal {
    return new SessionSeal(id, this.#options.server);
  }

  /** The store tells its own log that it is away; this replica knows the session all the same. */
  async #trying(work: () => Promise<void>): Promise<boolean> {
    try {
      await work();
      return true;
    } catch (error) {
      this.#options.log.debug({ err: error }, 'a session could not be shared');
      return false;
    }
  }
}
