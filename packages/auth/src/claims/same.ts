import type { Claims, ClaimValue } from './claims.ts';

/**
 * The first key, in the order of `a` and then of `b`, that makes two claim sets differ; undefined where they are equal
 * (docs/behaviour/registry.md#claims): values are sets, `"a"` equals `["a"]`, no claims equal only no claims. A key with an
 * empty list is a claim ("the key must be present") and differs from the key's absence.
 */
export function firstDifference(a: Claims, b: Claims): string | undefined {
  for (const key of Object.keys(a)) {
    if (!Object.hasOwn(b, key) || !sameValues(a[key], b[key])) return key;
  }
  return Object.keys(b).find((key) => !Object.hasOwn(a, key));
}

/**
 * One text for all equal claim sets, by which they can be stored, compared and interned: keys sorted, values as sorted
 * lists without repeats, the empty text for no claims. Claim sets are equal exactly when their texts are.
 */
export function canonicalClaims(claims: Claims): string {
  const keys = Object.keys(claims).sort();
  if (keys.length === 0) return '';
  const members = keys.map((key) => `${JSON.stringify(key)}:${JSON.stringify(canonicalValues(claims[key]))}`);
  return `{${members.join(',')}}`;
}

function canonicalValues(value: ClaimValue | undefined): string[] {
  return [...valueSet(value)].sort();
}

function sameValues(a: ClaimValue | undefined, b: ClaimValue | undefined): boolean {
  const left = valueSet(a);
  const right = valueSet(b);
  return left.size === right.size && left.isSubsetOf(right);
}

function valueSet(value: ClaimValue | undefined): Set<string> {
  if (value === undefined) return new Set();
  return new Set(typeof value === 'string' ? [value] : value);
}
