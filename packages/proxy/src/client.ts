import type { Log } from '@skep/core/log/log.ts';
import type { Clock } from '@skep/core/time/clock.ts';
import { HttpLink } from './backend/http/http-link.ts';
import { SseLink } from './backend/http/sse-link.ts';
import { Upstream } from './backend/http/upstream.ts';
import type { LinkEvents } from './backend/link.ts';
import { EraLink } from './backend/modern/era-link.ts';
import { Mux } from './backend/mux/mux.ts';
import type { JsonObject } from './message/json-rpc.ts';

export interface ClientOptions {
  /** The endpoint of the server, http or https. */
  readonly url: URL;
  readonly kind: 'http' | 'sse';
  /** Shown with every request (RFC 6750 §2.1). */
  readonly token?: string | undefined;
  /** Told the status of each answer. */
  readonly heard?: (status: number) => void;
  /** For each question; progress extends it. */
  readonly requestTimeoutMs: number;
  readonly skepVersion: string;
  readonly clock: Clock;
  readonly log: Log;
}

/** Skep itself as the client of an MCP server over HTTP. */
export interface Client {
  /** Resolves with the text of the answer, an error too; rejects with the code of what kept the server from answering. */
  ask(method: string, params: JsonObject): Promise<string>;
  /** Ends the session. Idempotent. */
  close(): void;
}

/**
 * Shakes hands with a server of either family of revisions, the way the proxy does. Resolves with undefined where it refuses
 * the handshake; rejects with the code of what kept it from answering.
 */
export async function openClient(options: ClientOptions): Promise<Client | undefined> {
  const { url, kind, clock, token } = options;
  const shown = token === undefined ? undefined : { header: 'authorization', value: `Bearer ${token}` };
  const isSecure = url.protocol === 'https:';
  const remote = isSecure ? { allowPrivate: true, headers: {} } : undefined;
  const upstream = new Upstream({ remote }, clock, options.heard);
  const open = (events: LinkEvents) => {
    const inner = { ...events, url, upstream, clock, credentials: () => shown };
    if (kind === 'sse') return new SseLink(inner);
    return new EraLink({
      ...inner,
      skepVersion: options.skepVersion,
      open: (under) => new HttpLink({ ...inner, ...under }),
    });
  };
  const mux = new Mux({ ...options, open });
  const close = (): void => {
    mux.close();
    upstream.close();
  };
  try {
    await mux.attach();
    if ((await mux.greet()) !== undefined) return { ask: (method, params) => mux.ask(method, params), close };
  } catch (error) {
    close();
    throw error;
  }
  close();
  return undefined;
}
