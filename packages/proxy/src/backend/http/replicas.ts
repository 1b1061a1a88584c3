import type { IncomingMessage } from 'node:http';
import type { Log } from '@skep/core/log/log.ts';
import type { HttpBackend } from '../backend.ts';
import type { Pending } from './pending.ts';
import type { RelayedSessions } from './relayed-sessions.ts';
import type { SessionOwners } from './session-owners.ts';
import type { SessionStore } from './session-store.ts';
import { SharedSessions } from './shared-sessions.ts';

interface Sharing {
  readonly backend: HttpBackend;
  readonly sessionStore?: SessionStore | undefined;
  readonly sessionTtlMs: number;
}

/** What a session is asked for with. */
interface AskedFor {
  readonly session: string | undefined;
  readonly principal: string | undefined;
  readonly url: URL;
}

/** Undefined where this proxy is alone. The query of a server's address may hold a key, and is no part of where it is. */
export function sharedBy(options: Sharing, log: Log): SharedSessions | undefined {
  const { sessionStore: store, backend, sessionTtlMs } = options;
  const { origin, pathname } = backend.target;
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
   * False where the session is another's, over, or nobody's among people who sign in. One that another replica saw begin is taken up;
   * of one that is known here nobody is asked. Rejects with `proxy/session-store-away`.
   */
  async isOpenTo({ session, principal, url }: AskedFor): Promise<boolean> {
    if (session === undefined) return true;
    const isOurs = principal === undefined || this.#owners.has(session, principal);
    if (isOurs && this.#sessions.has(session)) return true;
    const { session: found } = await this.#shared.find(session);
    // Where nobody signs in, servers may hand out ids in ways of their own.
    if (found === undefined) return principal === undefined;
    if (found.is === 'ended' || found.principal !== (principal ?? null)) return false;
    if (principal !== undefined) this.#owners.claim(session, principal);
    const { name, body } = found;
    const isNew = !this.#sessions.has(session);
    if (body !== undefined && isNew)
      this.#sessions.begun(session, { opening: { url, body }, principal, name });
    return true;
  }

  /** Tells the others what a reply says of its session. Undefined where there is nothing to tell; never rejects. */
  tell({ statusCode = 0, headers }: IncomingMessage, pending: Pending): Promise<void> | undefined {
    const { method, session, principal = null, opening, isOpening } = pending;
    const isFine = statusCode < 300;
    if (method === 'DELETE' && session !== undefined)
      return isFine || statusCode === 404 ? this.#shared.ended(session) : undefined;
    const begun = headers['mcp-session-id'];
    if (!isFine || !isOpening || typeof begun !== 'string') return undefined;
    return this.#shared.begun(begun, { is: 'open', principal, name: begun, body: opening?.body });
  }
}
