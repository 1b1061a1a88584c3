import { lookup } from 'node:dns/promises';
import { isPublicAddress } from '@skep/core/fetch/address-class.ts';

/** True for an address that only this machine or its network has, and for a name of one. */
export async function isPrivateHost({ hostname }: URL): Promise<boolean> {
  const host = hostname.replace(/^\[|\]$/gu, '');
  // What cannot be resolved now is judged when it is connected to.
  const found = await lookup(host, { all: true }).catch(() => []);
  return found.some(({ address }) => !isPublicAddress(address));
}
