import { readFile } from 'node:fs/promises';
import { networkInterfaces } from 'node:os';
import { parseRange, routesOf, type Range } from './subnets.ts';

/** What this machine uses by now: the ranges of its interfaces and, on Linux, of its routes. */
export async function machineRanges(): Promise<readonly Range[]> {
  // Other systems have no such file, and the engine refuses what it uses itself.
  const table = await readFile('/proc/net/route', 'utf8').catch(() => '');
  const own = interfaceAddresses().flatMap(({ cidr }) => parseRange(cidr ?? '') ?? []);
  return [...routesOf(table), ...own];
}

/** Every address of this machine that others could use, IPv6 included. */
export function machineAddresses(): readonly string[] {
  return interfaceAddresses().map(({ address }) => address);
}

function interfaceAddresses() {
  return Object.values(networkInterfaces())
    .flatMap((one) => one ?? [])
    .filter(({ internal }) => !internal);
}
