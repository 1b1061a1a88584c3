import { readFileSync } from 'node:fs';
import { networkInterfaces } from 'node:os';
import { parseRange, routesOf, type Range } from './subnets.ts';

/** What this machine uses by now: the ranges of its interfaces and, on Linux, of its routes. */
export function machineRanges(): readonly Range[] {
  const own = interfaceAddresses().flatMap(({ cidr }) => parseRange(cidr ?? '') ?? []);
  return [...routesOf(routeTable()), ...own];
}

/** At once: the kernel has it at hand, and a network is asked for while this process is busy with much else. */
function routeTable(): string {
  try {
    return readFileSync('/proc/net/route', 'utf8');
  } catch {
    // Other systems have no such file, and the engine refuses what it uses itself.
    return '';
  }
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
