import { canonicalAddress } from '@skep/core/fetch/address-class.ts';

/** RFC 1035 §2.3.4, as text. */
const MAX_NAME_CHARACTERS = 253;
/** What a label may hold (RFC 1123 §2.1), and the underscore that names of services begin with. */
const LABEL = /^(?!-)[a-z0-9_-]{1,63}(?<!-)$/;
/** What would end or begin another part of a URL; the parser of URLs moreover leaves out tabs and line ends. */
const NO_HOST = /[\s/?#@\\:%[\]\p{Cc}]/u;

/**
 * The one spelling of a host: a name in lower case and punycode without the dot at its end, or an IP address, whatever
 * way it is written. Undefined for what is neither.
 */
export function canonicalHost(text: string): string | undefined {
  const [, bracketed] = /^\[([^\]]*)\]$/.exec(text) ?? [];
  const literal = bracketed ?? text;
  if (literal.includes(':')) return canonicalAddress(literal);
  if (text === '' || text.length > 4 * MAX_NAME_CHARACTERS || NO_HOST.test(text)) return undefined;
  const parsed = URL.parse(`http://${text}/`)?.hostname.replace(/\.$/, '') ?? '';
  if (parsed.length > MAX_NAME_CHARACTERS || !parsed.split('.').every((label) => LABEL.test(label)))
    return undefined;
  return parsed;
}

/** A host in its one spelling, and a port. */
export interface Authority {
  readonly host: string;
  readonly port: number;
}

/** Reads `host`, `host:port` or `[address]:port` (RFC 3986 §3.2.2); without a port it is `defaultPort`. */
export function parseAuthority(text: string, defaultPort?: number): Authority | undefined {
  const [, name = '', digits] = /^(\[[^\]]*\]|[^:]*)(?::(\d{1,5}))?$/.exec(text) ?? [];
  const host = canonicalHost(name);
  const port = digits === undefined ? defaultPort : Number(digits);
  if (host === undefined || port === undefined || port < 1 || port > 65_535) return undefined;
  return { host, port };
}

/** `host:port` for people and for `Host`; an IPv6 address in brackets. */
export function showAuthority({ host, port }: Authority): string {
  return `${inUrl(host)}:${port}`;
}

/** The host as it stands in a URL. */
export function inUrl(host: string): string {
  return host.includes(':') ? `[${host}]` : host;
}
