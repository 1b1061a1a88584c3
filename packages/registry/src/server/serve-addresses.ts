import { SkepError } from '@skep/core/errors/skep-error.ts';
import type { AuthConfig } from '../config/auth.ts';
import { type ListenAddress, parseAddress, sameAddress } from './listen-address.ts';

/** The flags of `serve` that say where it listens. */
export interface AddressFlags {
  readonly address: string | undefined;
  readonly internalAddress: string;
}

export interface ServeAddresses {
  readonly public: ListenAddress;
  readonly internal: ListenAddress;
  /** Whether somebody has chosen the public address, or it is one of this machine alone: then a reload may end sign-in. */
  readonly isChosen: boolean;
}

const OPEN = ':8080';
/** Without sign-in whoever reaches the port may write, so only this machine does unless somebody says otherwise. */
const LOCAL = '127.0.0.1:8080';

/** Fails with `registry/invalid-address`, and with `usage/conflict` where both are the same. */
export function serveAddresses(
  { address: given, internalAddress }: AddressFlags,
  mode: AuthConfig['mode'],
): ServeAddresses {
  const address = given ?? (mode === 'anonymous' ? LOCAL : OPEN);
  const addresses = {
    public: parseAddress(address, '--address'),
    internal: parseAddress(internalAddress, '--internal-address'),
  };
  if (sameAddress(addresses.public, addresses.internal)) {
    throw new SkepError('usage/conflict', {
      message: `--address "${address}" and --internal-address "${internalAddress}" are the same`,
      hint: 'the internal endpoints need an address of their own that nobody outside can reach',
    });
  }
  return { ...addresses, isChosen: given !== undefined || mode === 'anonymous' };
}
