import { lookup } from 'node:dns/promises';
import { isIP } from 'node:net';
import { isPublicAddress } from '@skep/core/fetch/address-class.ts';
import type { Resolve } from '@skep/core/fetch/address-guard.ts';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import type { GitRepository } from './repository-url.ts';

/** What holds git to the addresses that were judged. Empty when any address will do. */
export interface AddressPin {
  /** git configuration. */
  readonly settings: readonly (readonly [name: string, value: string])[];
  /** Arguments of ssh. */
  readonly sshOptions: readonly string[];
}

export const NO_PIN: AddressPin = { settings: [], sshOptions: [] };

/**
 * Resolves the host of a repository, refuses it with `fetch/refused-address` unless all its addresses are public, and pins
 * git to them: another answer a moment later changes nothing, and redirects, which could lead anywhere, are not
 * followed. An HTTP proxy named in the environment resolves names itself and has to guard them itself.
 */
export async function pinAddress(
  repository: GitRepository,
  resolve: Resolve = (host) => lookup(host, { all: true }),
): Promise<AddressPin> {
  const { host, port, transport } = repository;
  const addresses = isIP(host) === 0 ? await addressesOf(host, resolve) : [host];
  const refused = addresses.find((address) => !isPublicAddress(address));
  if (refused !== undefined) {
    const which = refused === host ? `"${host}"` : `"${host}" (${refused})`;
    throw new SkepError('fetch/refused-address', { message: `the address of ${which} is not public` });
  }
  const first = addresses[0] ?? host;
  if (transport === 'ssh') {
    return { settings: [], sshOptions: ['-o', `HostName=${first}`, '-o', `HostKeyAlias=${host}`] };
  }
  const listed = addresses.map((address) => (isIP(address) === 6 ? `[${address}]` : address)).join(',');
  return {
    settings: [
      ['http.followRedirects', 'false'],
      ...(isIP(host) === 0 ? [['http.curloptResolve', `${host}:${port}:${listed}`] as const] : []),
    ],
    sshOptions: [],
  };
}

async function addressesOf(host: string, resolve: Resolve): Promise<readonly string[]> {
  const found = await resolve(host).catch((cause: unknown) => {
    throw new SkepError('source/unreachable', { message: `"${host}" has no address`, cause });
  });
  if (found.length === 0) throw new SkepError('source/unreachable', { message: `"${host}" has no address` });
  return found.map(({ address }) => address);
}
