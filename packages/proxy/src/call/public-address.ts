import type { Call } from './call.ts';

export interface AddressSettings {
  readonly trustProxyHeaders: boolean;
  /** What stands before every path where clients see it; begins with a slash and ends without one. */
  readonly endpointPrefix?: string | undefined;
}

/** How the client that sent a call sees this proxy. */
export interface PublicAddress {
  /** What stands before the proxy's own paths; empty or a path that ends without a slash. */
  readonly prefix: string;
  /** The part of it that stands before this machine; behind it comes what the entrance has, such as a workload's name. */
  readonly outer: string;
  /** The origin that a trusted proxy before this one named; undefined where none did. */
  readonly forwardedOrigin: string | undefined;
}

const HOST = /^(?:[a-z0-9._-]{1,253}|\[[0-9a-f:.]{2,45}\])(?<port>:\d{1,5})?$/iu;
const PATH = /^[!$%&'()*+,./0-9:;=@A-Z_a-z~-]{1,1024}$/u;

/**
 * Where paths that are handed to a client lead back to this proxy. `X-Forwarded-Prefix`, `-Host`, `-Port` and `-Proto` count
 * only where they are trusted, and never where they are no such thing.
 */
export function publicAddress(
  { req, prefix }: Pick<Call, 'req' | 'prefix'>,
  settings: AddressSettings,
): PublicAddress {
  const { trustProxyHeaders, endpointPrefix } = settings;
  // The outermost of several proxies names itself first.
  const said = (name: string): string | undefined => {
    const value = trustProxyHeaders ? req.headers[`x-forwarded-${name}`] : undefined;
    return typeof value === 'string' ? value.split(',', 1)[0]?.trim() : undefined;
  };
  const outer = endpointPrefix ?? asPrefix(said('prefix') ?? '');
  return {
    prefix: outer + prefix,
    outer,
    forwardedOrigin: originOf(said('host'), said('port'), said('proto')),
  };
}

/** A path as it can stand before another: one slash in front and none behind. Empty for what is none. */
function asPrefix(text: string): string {
  const path = PATH.test(text) ? text.replace(/^\/*/u, '/').replace(/\/+$/u, '') : '';
  return path.split('/').some((part) => part === '.' || part === '..') ? '' : path;
}

function originOf(
  host: string | undefined,
  port: string | undefined,
  proto: string | undefined,
): string | undefined {
  const match = host === undefined ? null : HOST.exec(host);
  if (match === null) return undefined;
  const scheme = proto === 'https' ? 'https' : 'http';
  const isPort = match.groups?.['port'] === undefined && port !== undefined && /^\d{1,5}$/u.test(port);
  const origin = `${scheme}://${host}${isPort ? `:${port}` : ''}`;
  return URL.canParse(origin) ? origin : undefined;
}
