import type { IncomingHttpHeaders, IncomingMessage, OutgoingHttpHeaders } from 'node:http';

/** Meant for one hop only (RFC 9110 §7.6.1), besides what `Connection` names. */
const HOP_BY_HOP = new Set([
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

/** Set by the proxy itself, whatever the client claims. */
const FORWARDED = new Set([
  'forwarded',
  'x-forwarded-for',
  'x-forwarded-host',
  'x-forwarded-port',
  'x-forwarded-prefix',
  'x-forwarded-proto',
]);

function isCors(name: string): boolean {
  return name.startsWith('access-control-');
}

function namedByConnection(headers: IncomingHttpHeaders): ReadonlySet<string> {
  return new Set((headers.connection ?? '').split(',').map((name) => name.trim().toLowerCase()));
}

function kept(headers: IncomingHttpHeaders, drop: (name: string) => boolean): OutgoingHttpHeaders {
  const named = namedByConnection(headers);
  const entries = Object.entries(headers).filter(
    ([name, value]) => value !== undefined && !HOP_BY_HOP.has(name) && !named.has(name) && !drop(name),
  );
  return Object.fromEntries(entries);
}

/** The client's headers as the backend gets them (docs/behaviour/proxy.md#forwarding, local backends). */
export function towardsBackend(
  req: IncomingMessage,
  target: URL,
  trustProxyHeaders: boolean,
): OutgoingHttpHeaders {
  const { headers, socket } = req;
  const before = trustProxyHeaders ? headers['x-forwarded-for'] : undefined;
  const client = socket.remoteAddress ?? 'unknown';
  return {
    ...kept(headers, (name) => FORWARDED.has(name) || name === 'host' || name === 'expect'),
    host: target.host,
    'x-forwarded-for': before === undefined ? client : `${String(before)}, ${client}`,
    ...(headers.host === undefined ? {} : { 'x-forwarded-host': headers.host }),
    'x-forwarded-proto': 'http',
  };
}

/**
 * The backend's headers as the client gets them. CORS is the proxy's own business, so it is never doubled; what the
 * proxy's answer varies by (`ownVary`) is named beside what the backend's does, or a cache would mix origins.
 */
export function towardsClient(headers: IncomingHttpHeaders, ownVary: unknown): OutgoingHttpHeaders {
  const passed = kept(headers, isCors);
  if (typeof ownVary !== 'string') return passed;
  return { ...passed, vary: headers.vary === undefined ? ownVary : `${ownVary}, ${headers.vary}` };
}
