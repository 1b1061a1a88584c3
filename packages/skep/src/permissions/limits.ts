import { SkepError } from '@skep/core/errors/skep-error.ts';
import { writtenVolumes, type NamedVolume } from './mounts.ts';

/** What a server may use of its machine. 0 where there is no limit. */
export interface Limits {
  /** Bytes, with what it keeps in memory as files; no swap beyond them. */
  readonly memory: number;
  /** Processors, in parts of one too. */
  readonly cpus: number;
  /** Processes and threads. */
  readonly pids: number;
  /** Bytes that it keeps on disk for itself, and the most that one file of it may have. */
  readonly disk: number;
}

/** As a person writes them, and a run configuration keeps them. */
export type GivenLimits = {
  readonly [Key in 'memory' | 'cpus' | 'pids_limit' | 'disk']?: string | undefined;
};

const GIB = 1024 ** 3;

export const DEFAULT_LIMITS: Limits = { memory: 2 * GIB, cpus: 0, pids: 512, disk: 4 * GIB };

/** Containers with less do not start. */
const MIN_MEMORY_BYTES = 6 * 1024 ** 2;
const MIN_DISK_BYTES = 1024 ** 2;
/** A supervisor process of the sandbox or engine, the server and a few threads of it. */
const MIN_PIDS = 16;
const MIN_CPUS = 0.01;
const MAX_CPUS = 4096;
const MAX_PIDS = 4_194_304;

const UNLIMITED: ReadonlySet<string> = new Set(['none', '0', '-1']);
const UNITS = ['', 'k', 'm', 'g', 't'];

/** Bytes with a suffix as container engines take them (`512m`, `1.5g`); undefined for what is none. */
function sizeIn(text: string): number | undefined {
  const [, number = '', unit = ''] = /^(\d{1,15}(?:\.\d{1,9})?)([kmgt]?)(?:i?b)?$/i.exec(text) ?? [];
  const bytes = Math.floor(Number(number) * 1024 ** UNITS.indexOf(unit.toLowerCase()));
  return number === '' || !Number.isSafeInteger(bytes) ? undefined : bytes;
}

function numberIn(text: string): number | undefined {
  return /^\d{1,7}(?:\.\d{1,6})?$/.test(text) ? Number(text) : undefined;
}

interface Kind {
  readonly read: (text: string) => number | undefined;
  readonly min: number;
  readonly max: number;
  readonly whole?: true;
  readonly what: string;
  readonly hint: string;
}

const SIZE = 'give bytes, or a number with k, m or g such as 512m';

const KINDS: Readonly<Record<keyof Limits, Kind>> = {
  memory: {
    read: sizeIn,
    min: MIN_MEMORY_BYTES,
    max: Number.MAX_SAFE_INTEGER,
    what: 'amount of memory',
    hint: `${SIZE}, at least 6m, or none`,
  },
  cpus: {
    read: numberIn,
    min: MIN_CPUS,
    max: MAX_CPUS,
    what: 'number of processors',
    hint: `give a number such as 0.5 or 2, at least ${MIN_CPUS}, or none`,
  },
  pids: {
    read: numberIn,
    min: MIN_PIDS,
    max: MAX_PIDS,
    whole: true,
    what: 'number of processes',
    hint: `give a whole number of at least ${MIN_PIDS}, or none`,
  },
  disk: {
    read: sizeIn,
    min: MIN_DISK_BYTES,
    max: Number.MAX_SAFE_INTEGER,
    what: 'amount of disk',
    hint: `${SIZE}, at least 1m, or none`,
  },
};

/** One limit as a person writes it; `none`, 0 and -1 are no limit. Fails with `usage/invalid-value`. */
export function parseLimit(which: keyof Limits, text: string): number {
  if (UNLIMITED.has(text)) return 0;
  const { read, min, max, whole, what, hint } = KINDS[which];
  const value = read(text);
  if (value !== undefined && value >= min && value <= max && !(whole && !Number.isInteger(value)))
    return value;
  throw new SkepError('usage/invalid-value', { message: `${JSON.stringify(text)} is no ${what}`, hint });
}

/** True for what `parseLimit` takes. */
export function isLimit(which: keyof Limits, text: string): boolean {
  try {
    parseLimit(which, text);
    return true;
  } catch {
    return false;
  }
}

/** The limits of a workload: what is given, else the defaults. Fails with `usage/invalid-value`. */
export function limitsOf({ memory, cpus, pids_limit, disk }: GivenLimits): Limits {
  const limit = (which: keyof Limits, text?: string): number =>
    text === undefined ? DEFAULT_LIMITS[which] : parseLimit(which, text);
  return {
    memory: limit('memory', memory),
    cpus: limit('cpus', cpus),
    pids: limit('pids', pids_limit),
    disk: limit('disk', disk),
  };
}

/** A number of bytes for people, in the largest unit that it fills. */
export function sizeText(bytes: number): string {
  const unit = Math.min(Math.floor(Math.log2(Math.max(bytes, 1)) / 10), 4);
  const rounded = Math.round((bytes / 1024 ** unit) * 10) / 10;
  return `${rounded} ${['bytes', 'KiB', 'MiB', 'GiB', 'TiB'][unit] ?? ''}`;
}

/** One limit for people; undefined where there is none. */
export function limitText(which: keyof Limits, value: number): string | undefined {
  if (value === 0) return undefined;
  if (which === 'memory' || which === 'disk') return `${sizeText(value)} of ${which}`;
  return which === 'pids' ? `${value} processes` : `${value} ${value === 1 ? 'processor' : 'processors'}`;
}

/** For people, a phrase each; empty where there is no limit at all. */
export function limitTexts(limits: Limits): readonly string[] {
  const { memory, pids, disk, cpus } = limits;
  return Object.entries({ memory, pids, disk, cpus }).flatMap(
    ([which, value]) => limitText(which as keyof Limits, value) ?? [],
  );
}

const NAMES: Readonly<Record<keyof Limits, string>> = {
  memory: 'memory',
  cpus: 'processor time',
  pids: 'processes',
  disk: 'disk',
};

/** What a configuration asks for beyond the defaults, a phrase each, for the person who must agree. */
export function moreThanDefault(given: GivenLimits): readonly string[] {
  const limits = limitsOf(given);
  return (['memory', 'pids', 'disk'] as const).flatMap((which) => {
    const value = limits[which];
    if (value !== 0 && value <= DEFAULT_LIMITS[which]) return [];
    const amount = limitText(which, value);
    return [amount === undefined ? `use ${NAMES[which]} without a limit` : `use up to ${amount}`];
  });
}

const FLAGS: Readonly<Record<keyof Limits, string>> = {
  memory: '--memory',
  cpus: '--cpus',
  pids: '--pids-limit',
  disk: '--disk',
};

/**
 * Why a server was ended, for the person who may want to give it more. Volumes that it shares and may write count as its
 * own, whoever has written what is in them.
 */
export function exceededText(
  which: keyof Limits,
  limits?: Limits,
  volumes: readonly NamedVolume[] = [],
): string {
  const amount = (limits && limitText(which, limits[which])) ?? `its limit of ${NAMES[which]}`;
  const shared = which === 'disk' ? writtenVolumes(volumes).map(({ volume }) => volume) : [];
  const also = shared.length === 0 ? '' : `, counting what lies in shared volumes: ${shared.join(', ')}`;
  return `the server was ended because it used more than ${amount} (${FLAGS[which]})${also}`;
}
