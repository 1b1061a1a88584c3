import { isIP, isIPv4 } from 'node:net';
import { SkepError } from '@skep/core/errors/skep-error.ts';

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

/** Whether only this machine reaches it. */
export const isOnLoopback = ({ host }: ListenAddress): boolean =>
  host === 'localhost' || host === '::1' || (isIPv4(host) && host.startsWith('127.'));

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
