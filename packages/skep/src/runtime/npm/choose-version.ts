import { comparePrecedence } from '@skep/core/catalog/version-order.ts';
import { z } from 'zod';

/**
 * The exact version that a tag, range or exact version means today, as npm chooses: an exact version, else a tag, else
 * the newest that the range allows, where `latest` is preferred and what is deprecated comes last. Undefined when there
 * is none.
 */
export function chooseVersion(packument: Packument, wanted = 'latest'): string | undefined {
  const { versions, 'dist-tags': tags } = packument;
  if (Object.hasOwn(versions, wanted)) return wanted;
  const tagged = Object.hasOwn(tags, wanted) ? tags[wanted] : undefined;
  if (tagged !== undefined) return Object.hasOwn(versions, tagged) ? tagged : undefined;
  const allows = range(wanted);
  if (allows === undefined) return undefined;
  const fitting = Object.keys(versions).filter(allows);
  const sound = fitting.filter((one) => !versions[one]?.deprecated);
  const latest = tags['latest'];
  if (latest !== undefined && sound.includes(latest)) return latest;
  return (sound.length > 0 ? sound : fitting).toSorted(comparePrecedence).at(-1);
}

/** `^1.2`, `~3`, `1.x`, `1`: what one token of a package reference can say of node-semver's grammar. */
const RANGE = /^([~^]?)v?(\d+|x)(?:\.(\d+|x)(?:\.(\d+|x)(?:-([0-9A-Za-z.-]+))?(?:\+[0-9A-Za-z.-]+)?)?)?$/i;
const VERSION = /^(\d+\.\d+\.\d+)(-[0-9A-Za-z.-]+)?(?:\+[0-9A-Za-z.-]+)?$/;

function range(text: string): ((version: string) => boolean) | undefined {
  const [, operator = '', ...parts] = RANGE.exec(text) ?? [];
  if (parts.length === 0) return undefined;
  const numbers = parts
    .slice(0, 3)
    .map((part) => (part === undefined || /x/i.test(part) ? undefined : BigInt(part)));
  const end = numbers.findIndex((one) => one === undefined);
  const given = numbers.slice(0, end === -1 ? 3 : end).map((one) => one ?? 0n);
  const [major = 0n, minor = 0n, patch = 0n] = given;
  const preRelease = given.length === 3 ? parts[3] : undefined;
  const base = `${major}.${minor}.${patch}`;
  const lowest = preRelease === undefined ? base : `${base}-${preRelease}`;
  const above = given.length === 0 ? undefined : ceiling(operator, given);
  return (version) => {
    const [, core, pre] = VERSION.exec(version) ?? [];
    // A pre-release is only meant where the range names one of the same version.
    if (core === undefined || (pre !== undefined && (preRelease === undefined || core !== base)))
      return false;
    if (comparePrecedence(version, lowest) < 0) return false;
    return above === undefined || comparePrecedence(core, above) < 0;
  };
}

/** The first version that is too new. */
function ceiling(operator: string, given: readonly bigint[]): string {
  const [major = 0n, minor = 0n, patch = 0n] = given;
  if (given.length === 1) return `${major + 1n}.0.0`;
  if (operator === '^' && major > 0n) return `${major + 1n}.0.0`;
  if (given.length === 2 || operator === '~') return `${major}.${minor + 1n}.0`;
  if (operator === '^' && minor > 0n) return `${major}.${minor + 1n}.0`;
  return `${major}.${minor}.${patch + 1n}`;
}

/** As much of a package's document as Skep looks at; everything else passes through untouched. */
const shape = z.looseObject({
  'dist-tags': z.record(z.string(), z.string()).default({}),
  /** None when everything was unpublished. */
  versions: z
    .record(
      z.string(),
      z.looseObject({
        dist: z.looseObject({ tarball: z.string().optional() }).optional(),
        deprecated: z.union([z.string(), z.boolean()]).optional(),
      }),
    )
    .default({}),
});

/** What a registry answers about a package (npm "package-metadata"). */
export type Packument = z.infer<typeof shape>;

/** Undefined for a document that is none. */
export function decodePackument(value: unknown): Packument | undefined {
  return shape.safeParse(value).data;
}
