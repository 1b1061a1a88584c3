import type { OutgoingHttpHeaders } from 'node:http';
import { notification } from '../../message/json-rpc.ts';
import { METHODS } from '../../message/methods.ts';
import { exchange } from './exchange.ts';
import type { Clock } from '@skep/core/time/clock.ts';
import type { Upstream } from './upstream.ts';

/** The oldest are forgotten then, and their clients begin anew themselves. */
const MAX_SESSIONS = 4_096;
/** A longer `initialize` is not kept. */
export const MAX_OPENING_BYTES = 16 * 1024;
const BEGIN_WITHIN_MS = 10_000;
const SEEN_EVERY_MS = 1_000;

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
}

interface Keeping {
  readonly clock: Pick<Clock, 'elapsed'>;
  readonly sessionTtlMs: number;
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

  begun(id: string, opening: Opening): void {
    const [oldest] = this.#known.keys();
    if (this.#known.size >= MAX_SESSIONS && oldest !== undefined) this.#known.delete(oldest);
    const lastSeen = this.#keeping.clock.elapsed();
    this.#known.set(id, { opening, name: id, beginning: undefined, lastSeen });
  }

  forget(id: string): void {
    this.#known.delete(id);
  }

  /**
   * True when the server knows the session again, which it did not as `name`. Requests that wait for it share one handshake, with
   * the headers of the first of them.
   */
  async again(id: string, name: string, headers: OutgoingHttpHeaders): Promise<boolean> {
    const known = this.#known.get(id);
    if (known === undefined) return false;
    if (known.name !== name) return true;
    known.beginning ??= this.#begin(known.opening, headers).catch(() => undefined);
    const next = await known.beginning;
    known.beginning = undefined;
    if (next === undefined) this.forget(id);
    else known.name = next;
    return next !== undefined;
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
