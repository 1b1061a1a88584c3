import type { IncomingHttpHeaders, IncomingMessage, OutgoingHttpHeaders } from 'node:http';
import type { HttpBackend } from '../backend.ts';

/** Meant for one hop only (RFC 9110 §7.6.1), besides what `Connection` names. */
export const HOP_BY_HOP: ReadonlySet<string> = new Set([
  'connection',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'http2-settings',
]);

/** True for what a proxy says of its client, whatever it is: who it is, for one. No client gets to claim it. */
function isForwarded(name: string): boolean {
  return name.startsWith('x-forwarded-') || name === 'forwarded' || name === 'x-real-ip';
}

/** The proxy decides itself what pages of other origins may read. */
function isCors(name: string): boolean {
  return name.startsWith('access-control-');
}

/** What nearly all connections name, and is dropped anyway. */
const USUAL = new Set(['keep-alive', 'close']);

function kept(
  headers: IncomingHttpHeaders,
  dropped: ReadonlySet<string>,
  isOurs: (name: string) => boolean,
): OutgoingHttpHeaders {
  const { connection } = headers;
  const named =
    connection === undefined || USUAL.has(connection)
      ? undefined
      : new Set(connection.split(',').map((name) => name.trim().toLowerCase()));
  const passed: OutgoingHttpHeaders = {};
  for (const name of Object.keys(headers)) {
    const value = headers[name];
    if (value === undefined || dropped.has(name) || named?.has(name) || isOurs(name)) continue;
    passed[name] = value;
  }
  return passed;
}

/** What a client shows of itself is for the proxy; a server elsewhere has its own ways to know who asks. */
const OWN_TO_CLIENTS = new Set(['authorization', 'cookie', 'origin', 'referer']);
/** What a server elsewhere says of its own address would send clients past the proxy. */
const OWN_TO_REMOTES = new Set(['alt-svc', 'set-cookie', 'strict-transport-security', 'www-authenticate']);

const OF_CLIENTS = new Set([...HOP_BY_HOP, 'host', 'expect']);
const OF_CLIENTS_AFAR = new Set([...OF_CLIENTS, ...OWN_TO_CLIENTS]);
const OF_REMOTES = new Set([...HOP_BY_HOP, ...OWN_TO_REMOTES]);

/** The client's headers as the backend gets them (docs/behaviour/proxy.md#forwarding). */
export function towardsBackend(
  { headers, socket }: IncomingMessage,
  { target, remote }: HttpBackend,
  { trustProxyHeaders, prefix }: { readonly trustProxyHeaders: boolean; readonly prefix: string },
): OutgoingHttpHeaders {
  const before = trustProxyHeaders ? headers['x-forwarded-for'] : undefined;
  const client = socket.remoteAddress ?? 'unknown';
  const isFar = remote !== undefined;
  const passed = kept(headers, isFar ? OF_CLIENTS_AFAR : OF_CLIENTS, isForwarded);
  passed['host'] = target.host;
  passed['x-forwarded-for'] = before === undefined ? client : `${String(before)}, ${client}`;
  if (headers.host !== undefined && !isFar) passed['x-forwarded-host'] = headers.host;
  passed['x-forwarded-proto'] = isFar ? target.protocol.slice(0, -1) : 'http';
  if (prefix !== '' && !isFar) passed['x-forwarded-prefix'] = prefix;
  return passed;
}

/**
 * The backend's headers as the client gets them. CORS is the proxy's own business, so it is never doubled; what the
 * proxy's answer varies by (`ownVary`) is named beside what the backend's does, or a cache would mix origins.
 */
export function towardsClient(
  headers: IncomingHttpHeaders,
  { remote }: HttpBackend,
  ownVary: unknown,
): OutgoingHttpHeaders {
  const passed = kept(headers, remote === undefined ? HOP_BY_HOP : OF_REMOTES, isCors);
  if (typeof ownVary === 'string')
    passed['vary'] = headers.vary === undefined ? ownVary : `${ownVary}, ${headers.vary}`;
  return passed;
}
