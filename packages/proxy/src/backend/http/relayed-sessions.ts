import type { OutgoingHttpHeaders } from 'node:http';
import { notification } from '../../message/json-rpc.ts';
import { METHODS } from '../../message/methods.ts';
import { exchange } from './exchange.ts';
import type { Upstream } from './upstream.ts';

/** The oldest are forgotten then, and their clients begin anew themselves. */
const MAX_SESSIONS = 4_096;
/** A longer `initialize` is not kept. */
export const MAX_OPENING_BYTES = 16 * 1024;
const BEGIN_WITHIN_MS = 10_000;

/** The `initialize` that began a session, as the server got it. */
export interface Opening {
  readonly url: URL;
  readonly headers: OutgoingHttpHeaders;
  readonly body: string;
}

interface Known {
  readonly opening: Opening;
  /** What the server calls the session by now; its client goes on with the first name. */
  name: string;
  beginning: Promise<string | undefined> | undefined;
}

/**
 * How the sessions of a server began whose bytes are relayed, so that one that it has forgotten can be begun anew without
 * its client (docs/behaviour/proxy.md#forgotten-sessions).
 */
export class RelayedSessions {
  readonly #known = new Map<string, Known>();
  readonly #upstream: Upstream;

  constructor(upstream: Upstream) {
    this.#upstream = upstream;
  }

  has(id: string): boolean {
    return this.#known.has(id);
  }

  /** What the server calls it. */
  nameOf(id: string): string {
    return this.#known.get(id)?.name ?? id;
  }

  begun(id: string, opening: Opening): void {
    const [oldest] = this.#known.keys();
    if (this.#known.size >= MAX_SESSIONS && oldest !== undefined) this.#known.delete(oldest);
    this.#known.set(id, { opening, name: id, beginning: undefined });
  }

  forget(id: string): void {
    this.#known.delete(id);
  }

  /** True when the server knows the session again, which it did not as `name`. Requests that wait for it share one handshake. */
  async again(id: string, name: string, version: unknown): Promise<boolean> {
    const known = this.#known.get(id);
    if (known === undefined) return false;
    if (known.name !== name) return true;
    known.beginning ??= this.#begin(known.opening, version).catch(() => undefined);
    const next = await known.beginning;
    known.beginning = undefined;
    if (next === undefined) this.forget(id);
    else known.name = next;
    return next !== undefined;
  }

  /** What the server calls the new session; undefined where it begins none. */
  async #begin({ url, headers, body }: Opening, version: unknown): Promise<string | undefined> {
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
