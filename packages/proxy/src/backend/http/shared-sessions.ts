import type { Log } from '@skep/core/log/log.ts';
import { SessionSeal, type SharedSession } from './sealed-session.ts';
import { MAX_VALUE_CHARACTERS, type SessionStore } from './session-store.ts';

/** What was found of a session. */
export interface Found {
  /** Undefined where there was nothing. */
  readonly text: string | undefined;
  readonly session: SharedSession | undefined;
}

type Open = Extract<SharedSession, { readonly is: 'open' }>;

interface SharingOptions {
  readonly store: SessionStore;
  /** Where the server is, without what may be secret of its address. */
  readonly server: string;
  readonly sessionTtlMs: number;
  readonly log: Log;
}

const ENDED: SharedSession = { is: 'ended' };

/** What replicas of one proxy tell each other of sessions (docs/behaviour/proxy.md#many-replicas, decision 0425). */
export class SharedSessions {
  readonly #options: SharingOptions;

  constructor(options: SharingOptions) {
    this.#options = options;
  }

  onBack(told: () => void): void {
    this.#options.store.onBack(told);
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

  /** Of a session that the server has begun just now. One that is another principal's stays theirs. */
  async begun(id: string, session: Open): Promise<void> {
    await this.#trying(async () => {
      const { text, session: before } = await this.find(id);
      if (before?.is === 'open' && before.principal !== session.principal) return;
      await this.#replace(id, text, session);
    });
  }

  /** True where it is written, as nobody else has changed it since it was found. Rejects as `find`. */
  renamed(id: string, { text }: Found, session: Open): Promise<boolean> {
    return this.#replace(id, text, session);
  }

  /** Its client has ended it. */
  async ended(id: string): Promise<void> {
    await this.#trying(async () => {
      const { text } = await this.find(id);
      if (!(await this.#replace(id, text, ENDED))) await this.#replace(id, (await this.find(id)).text, ENDED);
    });
  }

  /** It is used: it lives on, and is written again where the store has lost it. */
  async used(id: string, session: Open): Promise<void> {
    const { store, sessionTtlMs } = this.#options;
    await this.#trying(async () => {
      if (!(await store.extend(this.#seal(id).place, sessionTtlMs)))
        await this.#replace(id, undefined, session);
    });
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
  async #trying(work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (error) {
      this.#options.log.debug({ err: error }, 'a session could not be shared');
    }
  }
}
