import ipaddr from 'ipaddr.js';

/**
 * What lies behind an address. `public`: globally routable unicast. `private`: reachable inside some network only (RFC
 * 1918, RFC 6598, RFC 4193 and whatever else the IANA special-purpose registries hold). `never`: no remote host at all,
 * or one that hands out a machine's credentials, or a tunnel that could lead anywhere.
 */
export type AddressClass = 'public' | 'private' | 'never';

/**
 * Where clouds tell a machine its credentials and settings, besides the link-local addresses: Alibaba, Azure, Oracle,
 * AWS (all of its fd00:ec2::/32), Google, Scaleway.
 */
const METADATA = [
  '100.100.100.200/32',
  '168.63.129.16/32',
  '192.0.0.192/32',
  'fd00:ec2::/32',
  'fd20:ce::254/128',
  'fd00:42::42/128',
].map((block) => ipaddr.parseCIDR(block));

/** The only IPv6 addresses that IANA has given out for global unicast. */
const GLOBAL_UNICAST = ipaddr.IPv6.parseCIDR('2000::/3');
/** Well-known prefix of NAT64 (RFC 6052 §2.1): the last four bytes are the IPv4 address that is reached. */
const NAT64 = ipaddr.IPv6.parseCIDR('64:ff9b::/96');
/** Unspecified, loopback and IPv4-compatible addresses (RFC 4291 §2.5.5.1) begin with twelve bytes of zero. */
const ZEROS = ipaddr.IPv6.parseCIDR('::/96');

const NEVER = new Set([
  'unspecified',
  'broadcast',
  'multicast',
  'linkLocal',
  'loopback',
  'amt',
  '6to4',
  'teredo',
]);
/** IPv4 in IPv6 by translation, but for the one prefix whose far end is known. */
const TRANSLATED = new Set(['rfc6145', 'rfc6052', 'ipv4Mapped']);

/**
 * The one spelling of an IP address in any of its spellings (decimal, octal, hexadecimal, short, mapped into IPv6,
 * RFC 5952 for IPv6), or undefined for anything else, addresses with a zone among it.
 */
export function canonicalAddress(text: string): string | undefined {
  const plain = text.replace(EMBEDDED, inHex);
  if (plain.includes('%') || !ipaddr.isValid(plain)) return undefined;
  const parsed = ipaddr.process(plain);
  return parsed instanceof ipaddr.IPv6 ? parsed.toRFC5952String() : parsed.toString();
}

/** An IPv4 address at the end of an IPv6 address; the library takes it for mapped, whatever stands before it. */
const EMBEDDED = /(?<=:)(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})$/;

function inHex(whole: string, ...bytes: readonly (string | number)[]): string {
  const [a = 0, b = 0, c = 0, d = 0] = bytes.slice(0, 4).map(Number);
  if (Math.max(a, b, c, d) > 255) return whole;
  return `${(a * 256 + b).toString(16)}:${(c * 256 + d).toString(16)}`;
}

/** The bytes of an IP address, four or sixteen. */
export function addressBytes(address: string): Uint8Array {
  return Uint8Array.from(ipaddr.parse(address).toByteArray());
}

/** The class of an IP address; what is no address is `never`. */
export function classOfAddress(address: string): AddressClass {
  const canonical = canonicalAddress(address);
  if (canonical === undefined) return 'never';
  const parsed = ipaddr.parse(canonical);
  if (METADATA.some(([block, bits]) => block.kind() === parsed.kind() && parsed.match(block, bits)))
    return 'never';
  const range = parsed.range();
  if (NEVER.has(range)) return 'never';
  if (parsed instanceof ipaddr.IPv4) return range === 'unicast' ? 'public' : 'private';
  if (parsed.match(NAT64))
    return classOfAddress(ipaddr.fromByteArray(parsed.toByteArray().slice(12)).toString());
  if (parsed.match(ZEROS) || TRANSLATED.has(range)) return 'never';
  return range === 'unicast' && parsed.match(GLOBAL_UNICAST) ? 'public' : 'private';
}

/** True for an address that every machine reaches alike; what is no address is none. */
export function isPublicAddress(address: string): boolean {
  return classOfAddress(address) === 'public';
}
