import { textsOf, type RawClaims } from './claims.ts';

/** How an array in the resource's claims is read: the caller must hold all of it, or any one element. */
export type ArrayMatch = 'all' | 'any';

/** Why one claim of a resource is not covered. */
export type UncoveredReason =
  /** The resource's own value is no string and no list of strings: never satisfied. */
  | 'corrupt'
  /** The caller does not have the key. */
  | 'missing'
  /** The caller has the key, but lacks a value it needs. */
  | 'lacking';

/** The first claim that decided against the caller, and what would change it. */
export interface UncoveredClaim {
  readonly key: string;
  readonly reason: UncoveredReason;
  /** Values the caller does not hold: all of them are needed for `all`, one of them for `any`. */
  readonly lacking: readonly string[];
  readonly match: ArrayMatch;
}

/**
 * Claim containment, the one algorithm (docs/behaviour/registry.md#claim-containment): the first claim of the resource that
 * the caller's claims do not contain; undefined where they contain all. Exact and case-sensitive, no coercion; only own keys
 * of the caller count; a resource value of a wrong type is never covered. Claims that the resource does not mention are
 * irrelevant. Allocates nothing where the answer is yes.
 */
export function firstUncovered(
  caller: RawClaims,
  resource: RawClaims,
  match: ArrayMatch,
): UncoveredClaim | undefined {
  // The order of keys decides which failure is named, never whether there is one.
  for (const key in resource) {
    const required = resource[key];
    const reason = uncoveredReason(caller, key, required, match);
    if (reason === undefined) continue;
    const held = Object.hasOwn(caller, key) ? caller[key] : undefined;
    const lacking = reason === 'corrupt' ? [] : textsOf(required).filter((value) => !holds(held, value));
    return { key, reason, lacking, match };
  }
  return undefined;
}

function uncoveredReason(
  caller: RawClaims,
  key: string,
  required: unknown,
  match: ArrayMatch,
): UncoveredReason | undefined {
  const list = Array.isArray(required);
  if (!list && typeof required !== 'string') return 'corrupt';
  if (list && !allStrings(required)) return 'corrupt';
  if (!Object.hasOwn(caller, key)) return 'missing';
  const held = caller[key];
  if (!list) return holds(held, required) ? undefined : 'lacking';
  if (required.length === 0) return undefined; // "the key must be present", whatever its value
  return (match === 'any' ? holdsAny(held, required) : holdsAll(held, required)) ? undefined : 'lacking';
}

function holdsAll(held: unknown, required: readonly unknown[]): boolean {
  for (const value of required) if (!holds(held, value)) return false;
  return true;
}

function holdsAny(held: unknown, required: readonly unknown[]): boolean {
  for (const value of required) if (holds(held, value)) return true;
  return false;
}

/** Numbers, booleans, objects and null in a token contribute nothing, because `value` is always a string. */
function holds(held: unknown, value: unknown): boolean {
  return Array.isArray(held) ? held.includes(value) : held === value;
}

function allStrings(values: readonly unknown[]): boolean {
  for (const value of values) if (typeof value !== 'string') return false;
  return true;
}
