import { createHash } from 'node:crypto';

/** A range of IPv4 addresses: the first one as a number, and how many leading bits all of it share. */
export interface Range {
  readonly base: number;
  readonly prefix: number;
}

/**
 * Where the networks of workloads lie (RFC 1918). The pools that engines take from by themselves hold 30 networks; each of
 * these holds 8,192 of ours. The later ones are for machines that use the earlier ones.
 */
const POOLS: readonly Range[] = ['10.231.0.0', '172.30.0.0', '10.87.0.0', '192.168.0.0'].map((base) => ({
  base: toNumber(base),
  prefix: 16,
}));
/** Eight addresses: the network, the engine's end, a gateway, a server, and the broadcast. */
export const SUBNET_PREFIX = 29;
const SUBNET_SIZE = 2 ** (32 - SUBNET_PREFIX);
/** Routes of companies' networks often hold all private addresses; what is as wide as that is avoided, where it can be. */
const WIDE_PREFIX = 16;

/**
 * Subnets for a network, in the order in which they are to be tried: it begins in a place of `key`'s own, so that networks
 * made at once seldom meet, and leaves out what overlaps with `taken`. Wide ranges of `taken` are used last, where
 * nothing else is left, because a subnet is more specific than their routes.
 */
export function* subnetCandidates(key: string, taken: readonly Range[]): Generator<Range> {
  const narrow = taken.filter(({ prefix }) => prefix > WIDE_PREFIX);
  const digest = createHash('sha256').update(key).digest();
  for (const avoided of [taken, narrow]) {
    for (const pool of POOLS) {
      const count = 2 ** (SUBNET_PREFIX - pool.prefix);
      const first = digest.readUInt32BE(0) % count;
      for (let step = 0; step < count; step += 1) {
        const base = pool.base + ((first + step) % count) * SUBNET_SIZE;
        const subnet = { base, prefix: SUBNET_PREFIX };
        if (!avoided.some((one) => overlap(one, subnet))) yield subnet;
      }
    }
    if (narrow.length === taken.length) return;
  }
}

/** True when they have an address in common. */
export function overlap(left: Range, right: Range): boolean {
  const size = 2 ** (32 - Math.min(left.prefix, right.prefix));
  return Math.floor(left.base / size) === Math.floor(right.base / size);
}

/** The n-th address of a range, in dotted form. */
export function addressIn({ base }: Range, n: number): string {
  const all = base + n;
  return [24, 16, 8, 0].map((shift) => Math.floor(all / 2 ** shift) % 256).join('.');
}

/** As engines write it. */
export function rangeText(range: Range): string {
  return `${addressIn(range, 0)}/${range.prefix}`;
}

/** Reads `10.0.0.0/8`, also where bits beyond the prefix are set; undefined for anything else, IPv6 among it. */
export function parseRange(text: string): Range | undefined {
  const [, address = '', bits = ''] = /^(\d{1,3}(?:\.\d{1,3}){3})\/(\d{1,2})$/.exec(text) ?? [];
  const prefix = Number(bits);
  if (address === '' || prefix > 32 || address.split('.').some((part) => Number(part) > 255))
    return undefined;
  const size = 2 ** (32 - prefix);
  return { base: Math.floor(toNumber(address) / size) * size, prefix };
}

/** The routes of `/proc/net/route` (proc_pid_net(5)) without the default one: bytes in hexadecimal, the last one first. */
export function routesOf(table: string): readonly Range[] {
  return table
    .split('\n')
    .slice(1)
    .flatMap((line) => {
      const [, destination = '', , , , , , mask = ''] = line.split('\t');
      if (!/^[0-9A-F]{8}$/i.test(destination) || !/^[0-9A-F]{8}$/i.test(mask)) return [];
      const prefix = (bytesOf(mask).toString(2).match(/1/g) ?? []).length;
      return prefix === 0 ? [] : [{ base: bytesOf(destination), prefix }];
    });
}

const bytesOf = (hex: string): number => Buffer.from(hex, 'hex').readUInt32LE(0);

function toNumber(address: string): number {
  return address.split('.').reduce((sum, part) => sum * 256 + Number(part), 0);
}
