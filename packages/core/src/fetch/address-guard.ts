import type { LookupAddress } from 'node:dns';
import { lookup } from 'node:dns/promises';
import { isIP, type LookupFunction } from 'node:net';
import { SkepError } from '../errors/skep-error.ts';
import { canonicalAddress, isPublicAddress } from './address-class.ts';

/** Resolves a host to all its addresses. */
export type Resolve = (host: string) => Promise<readonly LookupAddress[]>;

/** Fails with `fetch/refused-address` for a non-public address; host names are judged at connect. */
export function checkHost(url: URL): void {
  const host = url.hostname.replace(/^\[|\]$/gu, '');
  // Hosts of other schemes keep their spelling, and a zone is for isIP alone.
  const isAddress = isIP(host) !== 0 || canonicalAddress(host) !== undefined;
  if (isAddress && !isPublicAddress(host)) throw refused(host, host);
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
