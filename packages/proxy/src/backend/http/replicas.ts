import type { IncomingMessage } from 'node:http';
import type { Log } from '@skep/core/log/log.ts';
import type { HttpBackend } from '../backend.ts';
import type { Pending } from './pending.ts';
import type { RelayedSessions } from './relayed-sessions.ts';
import type { SessionOwners } from './session-owners.ts';
import type { SessionStore } from '../replicas/session-store.ts';
import { SharedSessions } from '../replicas/shared-sessions.ts';

interface Sharing {
  readonly sessionStore?: SessionStore | undefined;
  readonly sessionTtlMs: number;
  readonly log: Log;
}

/** What a session is asked for with. */
interface AskedFor {
  readonly session: string | undefined;
  readonly principal: string | undefined;
  readonly url: URL;
}

/** Undefined where this proxy is alone. The query of a server's address may hold a key, and is no part of where it is. */
export function sharedBy({ target }: HttpBackend, options: Sharing): SharedSessions | undefined {
  const { sessionStore: store, sessionTtlMs, log } = options;
  const { origin, pathname } = target;
  return store && new SharedSessions({ store, server: origin + pathname, sessionTtlMs, log });
}

/** The sessions of one replica of a proxy, and what it tells and hears of those of the others. */
export class Replicas {
  readonly #shared: SharedSessions;
  readonly #sessions: RelayedSessions;
  readonly #owners: SessionOwners;

  constructor(shared: SharedSessions, sessions: RelayedSessions, owners: SessionOwners) {
    this.#shared = shared;
    this.#sessions = sessions;
    this.#owners = owners;
  }

  /**
   * `closed` where the session is another's, over, or nobody's among people who sign in; `own` where it is not the server's but the
   * proxy's. One that another replica saw begin is taken up; of one that is known here nobody is asked. Rejects with
   * `proxy/session-store-away`.
   */
  async accessTo({ session, principal, url }: AskedFor): Promise<'open' | 'own' | 'closed'> {
    if (session === undefined) return 'open';
    const isOurs = principal === undefined || this.#owners.has(session, principal);
    if (isOurs && this.#sessions.has(session)) return 'open';
    const { session: found } = await this.#shared.find(session);
    // Where nobody signs in, servers may hand out ids in ways of their own.
    if (found === undefined) return principal === undefined ? 'open' : 'closed';
    if (found.is === 'ended' || found.principal !== (principal ?? null)) return 'closed';
    if (found.is === 'own') return 'own';
    if (principal !== undefined) this.#owners.claim(session, principal);
    const { name, body } = found;
    const isNew = !this.#sessions.has(session);
    if (body !== undefined && isNew)
      this.#sessions.begun(session, { opening: { url, body }, principal, name });
    return 'open';
  }

  /** Tells the others what a reply says of its session. Undefined where there is nothing to tell; never rejects. */
  tell({ statusCode = 0, headers }: IncomingMessage, pending: Pending): Promise<void> | undefined {
    const { method, session, principal = null, opening, isOpening } = pending;
    const isFine = statusCode < 300;
    if (method === 'DELETE' && session !== undefined) {
      if (statusCode === 404) return this.#shared.endedUnknown(session);
      return isFine ? this.#shared.ended(session) : undefined;
    }
    const begun = headers['mcp-session-id'];
    if (!isFine || !isOpening || typeof begun !== 'string') return undefined;
    return this.#shared.begun(begun, { is: 'open', principal, name: begun, body: opening?.body });
  }
}
