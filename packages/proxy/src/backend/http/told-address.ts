import { isLoopback } from '@skep/core/fetch/loopback.ts';
import type { PublicAddress } from '../../call/public-address.ts';

/** Where a stream was asked for, and how its client sees that. */
export interface Asked extends Omit<PublicAddress, 'outer'> {
  /** On the server. */
  readonly url: URL;
  /** The `Host` that the client named: all workloads of the front door stand there. */
  readonly entrance: string | undefined;
}

/**
 * The address that a server told for its messages, as a client of the proxy needs it; the query stays as it is, byte for
 * byte. The server was not told of the prefix. The address of another host is nobody's business but its client's.
 */
export function endpointFor(address: string, asked: Asked): string {
  const { prefix, forwardedOrigin } = asked;
  const there = URL.parse(asBytes(address), asked.url.href);
  if (there === null || !isOwn(there, asked)) return address;
  const path = onlyPath(there.pathname);
  const query = /\?[^#]*/u.exec(address)?.[0] ?? '';
  return `${forwardedOrigin ?? ''}${prefix}${path}${query}`;
}

/** Bytes beyond ASCII, one a character here, as they are written in addresses. */
function asBytes(address: string): string {
  return address.replaceAll(/[\u0080-\u00ff]/gu, (one) => `%${one.charCodeAt(0).toString(16)}`);
}

/** The server knows neither its port outside a container nor who stands before it, so those are its own too. */
function isOwn(there: URL, { url, entrance, forwardedOrigin }: Asked): boolean {
  if (there.protocol !== 'http:' && there.protocol !== 'https:') return false;
  const { hostname, origin, host } = there;
  // One elsewhere may not know either that it is spoken to over TLS.
  if (host === url.host || origin === forwardedOrigin || hostname === '0.0.0.0') return true;
  return isLoopback(hostname) || isEntrance(host, entrance);
}

/** True for the host, with its port, at which a client came in. */
export function isEntrance(host: string, entrance: string | undefined): boolean {
  return entrance !== undefined && URL.parse(`http://${entrance}`)?.host === host;
}

/** A path that cannot be taken for a host. */
export function onlyPath(pathname: string): string {
  return pathname.startsWith('//') ? `/.${pathname}` : pathname;
}

/** True where a client that asked the proxy would go to somebody else. */
export function leadsElsewhere(address: string): boolean {
  return URL.parse(address, 'http://proxy.invalid/')?.origin !== 'http://proxy.invalid';
}

/**
 * Where a redirect of the backend leads clients: to the backend's own paths by the way that they came, never around the
 * proxy nor to whatever else stands at their entrance. Addresses of others are as the backend says.
 */
export function locationFor(
  location: string,
  { url, entrance }: Pick<Asked, 'url' | 'entrance'>,
  prefix: string,
): string {
  const there = URL.parse(location, url.href);
  if (there === null || (there.origin !== url.origin && !isEntrance(there.host, entrance))) return location;
  return `${prefix}${prefix === '' ? onlyPath(there.pathname) : there.pathname}${there.search}${there.hash}`;
}

/** An address without what its query shares with `search`, however that is written. */
export function withoutQuery(address: string, search: string): string {
  const own = new Set(Array.from(new URLSearchParams(search), (pair) => JSON.stringify(pair)));
  return address.replace(/\?[^#]*/u, (query) => {
    const others = query
      .slice(1)
      .split('&')
      .filter(
        (piece) => !Array.from(new URLSearchParams(piece)).some((pair) => own.has(JSON.stringify(pair))),
      );
    return others.length === 0 ? '' : `?${others.join('&')}`;
  });
}
