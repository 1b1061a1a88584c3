import { type Claims, type ClaimValue, parseClaims, type RawClaims } from '@skep/auth/claims/claims.ts';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { isRecord } from '@skep/core/json/is-record.ts';
import { parsedJson } from '@skep/core/json/parsed-json.ts';

/**
 * Claims of an entry, as canonical JSON (sorted keys, sorted unique arrays); the empty text is "no claims". Equal claims
 * have equal text, so thousands of entries share a handful of sets.
 */
export type ClaimSet = string;

export const NO_CLAIMS: ClaimSet = '';

/** Index of a claim set within one snapshot: what the page walk compares instead of claims. */
export type ClaimClass = number;

/** Which claim classes a caller sees; `all` for callers whom no claims are checked for. */
export type VisibleClasses = readonly ClaimClass[] | 'all';

/** Nobody satisfies a claim whose value is no string and no list of strings. */
const UNREADABLE: RawClaims = { unreadable: null };

/** Claims of a stored row, for a decision. A row that another program has damaged is closed to all but super-admins. */
export function storedClaims(set: ClaimSet): RawClaims {
  return decodeClaimSet(set) ?? UNREADABLE;
}

/** Claims of a stored row, for comparing them. Fails with `store/failed` where they cannot be read. */
export function exactClaims(set: ClaimSet): Claims {
  const decoded = decodeClaimSet(set);
  try {
    // What was stored has passed the limits of its time, which may have been others.
    return parseClaims(decoded, UNLIMITED);
  } catch (cause) {
    throw new SkepError('store/failed', { message: 'the store holds claims that are none', cause });
  }
}

const UNLIMITED = { keys: Infinity, valuesPerKey: Infinity, bytesPerText: Infinity };

/** Claims as answers show them: a list of one value is that value. Undefined where there are none. */
export function shownClaims(set: ClaimSet): Readonly<Record<string, ClaimValue>> | undefined {
  if (set === NO_CLAIMS) return undefined;
  return Object.fromEntries(Object.entries(exactClaims(set)).map(([key, value]) => [key, shortest(value)]));
}

function shortest(value: ClaimValue): ClaimValue {
  const [only] = value;
  return typeof value !== 'string' && value.length === 1 && only !== undefined ? only : value;
}

/** Undefined where the text is no JSON object, which only another program's hand in the store can cause. */
export function decodeClaimSet(claims: ClaimSet): RawClaims | undefined {
  const decoded = claims === NO_CLAIMS ? {} : parsedJson(claims);
  return isRecord(decoded) ? decoded : undefined;
}
