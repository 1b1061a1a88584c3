import { SkepError } from '@skep/core/errors/skep-error.ts';
import type { Clock } from '@skep/core/time/clock.ts';
import type { ReplicatedPort, ServerSession } from '../backend/port.ts';
import { isOfSame, type OwnSession } from '../backend/replicas/sealed-session.ts';
import type { SharedSessions } from '../backend/replicas/shared-sessions.ts';
import type { Credentials } from '../call/call.ts';
import type { Session, Sessions } from './sessions.ts';

/** How often other replicas are told at most that a session is used. */
const SHARED_EVERY_MS = 60_000;
/** Once the store gave no answer, sessions that are known here are served without asking it for so long. */
const QUIET_MS = 5_000;
/** What `Session` names itself. */
const KEY = /^[0-9a-f-]{36}$/;

interface ReplicatedSessionsOptions {
  readonly shared: SharedSessions;
  readonly port: ReplicatedPort;
  readonly sessions: Sessions;
  /** Where nobody signs in, all clients are one, whatever each replica calls it. */
  readonly signedIn: boolean;
  readonly clock: Pick<Clock, 'elapsed'>;
  readonly sessionTtlMs: number;
}

/** What a request names, and who sends it. */
interface Meeting {
  readonly id: string;
  readonly principal: string;
  readonly credentials: Credentials | undefined;
}

/** What other replicas know of a session. */
interface Known {
  record: OwnSession;
  lastShared: number;
}

/**
 * Sessions of a face that other replicas of the proxy serve, too (decision 0445). Each request asks the store first: a session that
 * began elsewhere is taken up, and one that ended elsewhere is over.
 */
export class ReplicatedSessions {
  readonly #options: ReplicatedSessionsOptions;
  readonly #known = new WeakMap<Session, Known>();
  /** By principal and id, so that nobody waits for what somebody else is refused. */
  readonly #adopting = new Map<string, Promise<void>>();
  #quietUntil = 0;

  constructor(options: ReplicatedSessionsOptions) {
    this.#options = options;
    options.shared.onBack(() => this.#shareAll());
  }

  /**
   * Afterwards the sessions of this replica have that one if it may be used by whoever asks. Rejects with what kept this from being
   * found out, `proxy/session-store-away` above all.
   */
  async meet(meeting: Meeting): Promise<void> {
    const { id, principal } = meeting;
    if (!KEY.test(id)) return;
    const key = JSON.stringify([principal, id]);
    const session = this.#options.sessions.get(id);
    if (this.#adopting.has(key)) await this.#adopting.get(key);
    else if (session === undefined) {
      const adopting = this.#adopt(meeting).finally(() => this.#adopting.delete(key));
      this.#adopting.set(key, adopting);
      await adopting;
    } else if (session.principal === principal) await this.check(session);
  }

  /** Tells the others of a session that has begun here. Never rejects. */
  begun(session: Session, server: ServerSession | null): Promise<void> {
    const { version, abilities } = session;
    const principal = this.#sharedName(session.principal);
    const record = { is: 'own', principal, version, abilities: [...abilities], server } as const;
    this.#follow(session, record);
    return this.#options.shared.begun(session.key, record);
  }

  /** Its client has ended it. Never rejects. */
  ended({ key }: Session): Promise<void> {
    return this.#options.shared.ended(key);
  }

  /** Lets go of a session that is over elsewhere, and keeps all others alive. Never rejects. */
  async check(session: Session): Promise<void> {
    const { shared, sessions, clock } = this.#options;
    const known = this.#known.get(session);
    if (known === undefined || clock.elapsed() < this.#quietUntil) return;
    try {
      const { session: found } = await shared.find(session.key);
      // What nobody has used long enough is in no store any more.
      const isOver = found === undefined ? sessions.isOver(session) : !isOfSame(found, known.record);
      if (isOver) sessions.letGo(session);
      else {
        sessions.use(session);
        this.#share(session, known, found === undefined);
      }
    } catch {
      // The store tells its own log that it is away.
      this.#quietUntil = clock.elapsed() + QUIET_MS;
    }
  }

  /** Of what is not this principal's nothing is kept. */
  async #adopt({ id, principal, credentials }: Meeting): Promise<void> {
    const { shared, sessions, port } = this.#options;
    const { session: record } = await shared.find(id);
    if (record?.is !== 'own' || record.principal !== this.#sharedName(principal)) return;
    const { version } = record;
    const session = sessions.create({ key: id, principal, version, abilities: new Set(record.abilities) });
    if (session === undefined) throw new SkepError('proxy/session-limit');
    session.credentials = credentials;
    this.#follow(session, record);
    try {
      await port.adopt(session, record.server);
    } catch (error) {
      sessions.letGo(session);
      throw error;
    }
  }

  #follow(session: Session, record: OwnSession): void {
    const known: Known = { record, lastShared: this.#options.clock.elapsed() };
    this.#known.set(session, known);
    session.renewed = async (begin) => {
      const name = await this.#options.shared.renewed(session.key, known.record, begin);
      const { server } = known.record;
      if (name !== undefined && server !== null)
        known.record = { ...known.record, server: { ...server, name } };
      return name;
    };
  }

  /** Tells the others that it is used, now and then, or at once where the store has lost it. */
  #share(session: Session, known: Known, isLost: boolean): void {
    const { shared, clock, sessionTtlMs } = this.#options;
    const now = clock.elapsed();
    if (!isLost && now - known.lastShared < Math.min(SHARED_EVERY_MS, sessionTtlMs / 4)) return;
    known.lastShared = now;
    void shared.used(session.key, known.record);
  }

  /** What a store that was away may have lost, or never heard of. */
  async #shareAll(): Promise<void> {
    this.#quietUntil = 0;
    for (const session of this.#options.sessions.all()) {
      const known = this.#known.get(session);
      if (known !== undefined) await this.#options.shared.used(session.key, known.record);
    }
  }

  #sharedName(principal: string): string | null {
    return this.#options.signedIn ? principal : null;
  }
}
