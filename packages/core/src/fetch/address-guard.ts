import type { LookupAddress } from 'node:dns';
import { lookup } from 'node:dns/promises';
import type { LookupFunction } from 'node:net';
import ipaddr from 'ipaddr.js';
import { SkepError } from '../errors/skep-error.ts';

/** Resolves a host to all its addresses. */
export type Resolve = (host: string) => Promise<readonly LookupAddress[]>;

/** IPv4-compatible addresses (RFC 4291 §2.5.5.1): old networks may take them for the IPv4 part. */
const IPV4_COMPATIBLE = ipaddr.IPv6.parseCIDR('::/96');

/**
 * True for globally routable unicast addresses (IANA special-purpose registries). IPv4 addresses mapped into
 * IPv6 count as what they embed; tunnels (6to4, Teredo, NAT64) are refused, they can lead anywhere.
 */
export function isPublicAddress(address: string): boolean {
  if (!ipaddr.isValid(address)) return false;
  const parsed = ipaddr.process(address);
  if (parsed instanceof ipaddr.IPv6 && parsed.match(IPV4_COMPATIBLE)) return false;
  return parsed.range() === 'unicast';
}

/** Fails with `fetch/refused-address` for a non-public address; host names are judged at connect. */
export function checkHost(url: URL): void {
  const host = url.hostname.replace(/^\[|\]$/gu, '');
  if (ipaddr.isValid(host) && !isPublicAddress(host)) throw refused(host, host);
}

/**
 * A lookup for `net.connect` that refuses hosts with a non-public address. Judging at connect time, on the very
 * addresses that are used, leaves no gap for an answer that changes between check and use.
 */
export function guardedLookup(resolve: Resolve = resolveAll): LookupFunction {
  return (host, options, callback) => {
    resolve(host).then(
      (addresses) => {
        const bad = addresses.find(({ address }) => !isPublicAddress(address));
        if (bad !== undefined) callback(refused(host, bad.address), []);
        else answer(addresses, options.all === true, callback);
      },
      (error: unknown) => callback(error instanceof Error ? error : new SkepError('fetch/unreachable'), []),
    );
  };
}

function answer(
  addresses: readonly LookupAddress[],
  all: boolean,
  callback: Parameters<LookupFunction>[2],
): void {
  const [first] = addresses;
  if (first === undefined) callback(new SkepError('fetch/unreachable'), []);
  else if (all) callback(null, [...addresses]);
  else callback(null, first.address, first.family);
}

function resolveAll(host: string): Promise<readonly LookupAddress[]> {
  return lookup(host, { all: true });
}

function refused(host: string, address: string): SkepError {
  const which = host === address ? `"${host}"` : `"${host}" (${address})`;
  return new SkepError('fetch/refused-address', { message: `the address of ${which} is not public` });
}
