import { isIP } from 'node:net';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import type { AuthConfig } from '../config/auth.ts';

/** Where a listener listens. An empty host is every interface. */
export interface ListenAddress {
  readonly host: string;
  /** 0 lets the system choose. */
  readonly port: number;
}

/**
 * Reads `host:port`: the host empty, an IP address (IPv6 in brackets) or `localhost`
 * (docs/behaviour/registry.md#logs-and-warnings). `setting` names where the text comes from. Fails with
 * `registry/invalid-address`.
 */
export function parseAddress(text: string, setting: string): ListenAddress {
  if (text === '') throw invalid(`${setting}: address cannot be empty`);
  const match = /^(?:\[([^\]]*)\]|([^:]*)):(\d{1,5})$/.exec(text);
  const host = match?.[1] ?? match?.[2];
  const port = Number(match?.[3]);
  if (host === undefined || port > 65_535) throw invalid(`${setting}: "${text}" is no address`);
  const isBracketed = match?.[1] !== undefined;
  const known = isBracketed ? isIP(host) === 6 : host === '' || host === 'localhost' || isIP(host) === 4;
  if (!known) throw invalid(`${setting}: the host of "${text}" must be empty, an IP address or localhost`);
  return { host, port };
}

/** Two listeners cannot share one address; port 0 never collides. */
export function sameAddress(one: ListenAddress, other: ListenAddress): boolean {
  return (
    one.port !== 0 &&
    one.port === other.port &&
    (one.host === other.host || one.host === '' || other.host === '')
  );
}

function invalid(message: string): SkepError {
  return new SkepError('registry/invalid-address', { message });
}

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
