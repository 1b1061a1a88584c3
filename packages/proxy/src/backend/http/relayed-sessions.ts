import type { OutgoingHttpHeaders } from 'node:http';
import { notification } from '../../message/json-rpc.ts';
import { METHODS } from '../../message/methods.ts';
import { exchange } from './exchange.ts';
import type { Clock } from '@skep/core/time/clock.ts';
import type { RelayedSession } from '../replicas/sealed-session.ts';
import type { SharedSessions } from '../replicas/shared-sessions.ts';
import type { Upstream } from './upstream.ts';

/** The oldest are forgotten then, and their clients begin anew themselves. */
const MAX_SESSIONS = 4_096;
/** A longer `initialize` is not kept. */
export const MAX_OPENING_BYTES = 16 * 1024;
const BEGIN_WITHIN_MS = 10_000;
const SEEN_EVERY_MS = 1_000;
/** How often other replicas are told at most that a session is used. */
const SHARED_EVERY_MS = 60_000;

/** The `initialize` that began a session; who sent it shows that anew with the request that the server did not know. */
export interface Opening {
  readonly url: URL;
  readonly body: string;
}

interface Known {
  readonly opening: Opening;
  /** What the server calls the session by now; its client goes on with the first name. */
  name: string;
  beginning: Promise<string | undefined> | undefined;
  lastSeen: number;
  /** Whose it is; null where nobody signs in. */
  readonly principal: string | null;
  lastShared: number;
}

interface Keeping {
  readonly clock: Pick<Clock, 'elapsed'>;
  readonly sessionTtlMs: number;
  /** Where other replicas serve the same sessions. */
  readonly shared?: SharedSessions | undefined;
}

/** Of a session that begins, or that another replica saw begin. */
interface Begun {
  readonly opening: Opening;
  readonly principal: string | undefined;
  /** What the server calls it, where that is not its id any more. */
  readonly name?: string;
}

/**
 * How the sessions of a server began whose bytes are relayed, so that one that it has forgotten can be begun anew without
 * its client (docs/behaviour/proxy.md#forgotten-sessions).
 */
export class RelayedSessions {
  readonly #known = new Map<string, Known>();
  readonly #upstream: Upstream;
  readonly #keeping: Keeping;

  constructor(upstream: Upstream, keeping: Keeping) {
    this.#upstream = upstream;
    this.#keeping = keeping;
    keeping.shared?.onBack(() => this.#shareAll());
  }

  /** Other replicas serve them, too. */
  get areShared(): boolean {
    return this.#keeping.shared !== undefined;
  }

  /** Those that have not been asked after for as long as a session lives are forgotten. */
  has(id: string): boolean {
    const { clock, sessionTtlMs } = this.#keeping;
    const now = clock.elapsed();
    for (const [old, { lastSeen }] of this.#known) {
      if (now - lastSeen <= sessionTtlMs) break;
      this.#known.delete(old);
    }
    const known = this.#known.get(id);
    if (known === undefined) return false;
    this.#share(id, known);
    // One that is asked after with every call is not written down with each.
    if (now - known.lastSeen < Math.min(SEEN_EVERY_MS, sessionTtlMs / 2)) return true;
    known.lastSeen = now;
    this.#known.delete(id);
    this.#known.set(id, known);
    return true;
  }

  /** What the server calls it. */
  nameOf(id: string): string {
    return this.#known.get(id)?.name ?? id;
  }

  begun(id: string, { opening, principal, name = id }: Begun): void {
    const [oldest] = this.#known.keys();
    if (this.#known.size >= MAX_SESSIONS && oldest !== undefined) this.#known.delete(oldest);
    const now = this.#keeping.clock.elapsed();
    const times = { lastSeen: now, lastShared: now };
    this.#known.set(id, { opening, name, principal: principal ?? null, beginning: undefined, ...times });
  }

  forget(id: string): void {
    this.#known.delete(id);
  }

  /**
   * True when the server knows the session again, which it did not as `name`. Requests that wait for it share one handshake, with
   * the headers of the first of them; none is made without any. Rejects with `proxy/session-store-away` where other replicas
   * serve it too and nobody can tell what they did.
   */
  async again(id: string, name: string, headers: OutgoingHttpHeaders | undefined): Promise<boolean> {
    const known = this.#known.get(id);
    if (known === undefined) return false;
    if (known.name !== name) return true;
    const beginning = (known.beginning ??= this.#renew(id, known, headers));
    try {
      const next = await beginning;
      if (next === undefined) this.forget(id);
      else known.name = next;
      return next !== undefined && next !== name;
    } finally {
      known.beginning = undefined;
    }
  }

  /** What the server calls the session from now on; undefined where it is over. */
  #renew(id: string, known: Known, headers: OutgoingHttpHeaders | undefined): Promise<string | undefined> {
    const begin = headers && (() => this.#begin(known.opening, headers).catch(() => undefined));
    const { shared } = this.#keeping;
    if (shared !== undefined) return shared.renewed(id, sharedOf(known), begin);
    return begin === undefined ? Promise.resolve(known.name) : begin();
  }

  /** Tells the other replicas that it is used, now and then. */
  #share(id: string, known: Known): void {
    const { shared, clock, sessionTtlMs } = this.#keeping;
    const now = clock.elapsed();
    if (shared === undefined || now - known.lastShared < Math.min(SHARED_EVERY_MS, sessionTtlMs / 4)) return;
    known.lastShared = now;
    void shared.used(id, sharedOf(known));
  }

  /** What a store that was away may have lost, or never heard of. */
  async #shareAll(): Promise<void> {
    // Those that are used meanwhile move to the end.
    for (const [id, known] of Array.from(this.#known.entries()))
      await this.#keeping.shared?.used(id, sharedOf(known));
  }

  /** What the server calls the new session; undefined where it begins none. */
  async #begin({ url, body }: Opening, shown: OutgoingHttpHeaders): Promise<string | undefined> {
    const { 'mcp-session-id': _, 'mcp-protocol-version': version, ...others } = shown;
    const headers = { ...others, 'content-length': Buffer.byteLength(body) };
    const via = this.#upstream;
    const signal = AbortSignal.timeout(BEGIN_WITHIN_MS);
    const reply = await exchange(url, { method: 'POST', headers, body, signal, via });
    const name = reply.header('mcp-session-id');
    if (reply.status !== 200 || name === undefined) {
      reply.drop();
      return undefined;
    }
    for await (const event of reply.messages()) void event;
    const told = await exchange(url, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
        'mcp-session-id': name,
        ...(typeof version === 'string' ? { 'mcp-protocol-version': version } : {}),
      },
      body: notification(METHODS.initialized, {}).text,
      signal,
      via,
    });
    told.drop();
    return name;
  }
}

function sharedOf({ principal, name, opening }: Known): RelayedSession {
  return { is: 'open', principal, name, body: opening.body };
}
