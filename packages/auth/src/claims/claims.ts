import { isRecord } from '@skep/core/json/is-record.ts';
import { SkepError } from '@skep/core/errors/skep-error.ts';

export type ClaimValue = string | readonly string[];

/** Claims of a source, registry or entry, valid by `parseClaims`. Keys are literal; no prototype, so any key is data. */
export type Claims = Readonly<Record<string, ClaimValue>>;

/** Claims before anyone checked them: a token's payload, or a row that another program may have written. */
export type RawClaims = Readonly<Record<string, unknown>>;

/** No claims at all; what an absent `claims` key means. */
export const NO_CLAIMS: Claims = emptyClaims();

export interface ClaimLimits {
  readonly keys: number;
  readonly valuesPerKey: number;
  /** UTF-8 bytes of one key or one value. */
  readonly bytesPerText: number;
}

/** Bounds of a claims map (docs/behaviour/registry.md#claims). */
export const CLAIM_LIMITS: ClaimLimits = { keys: 64, valuesPerKey: 256, bytesPerText: 1024 };

/** One reason why a value is no claims map. `key` is absent when the map itself is at fault. */
export interface ClaimsViolation {
  readonly key?: string;
  readonly message: string;
}

/** True when the map holds nothing that a caller would need. */
export function isUnlabeled(claims: RawClaims): boolean {
  for (const _key in claims) return false;
  return true;
}

/** Whether every caller holds these claims who has any at all of their names: an empty list asks for none of its texts. */
export function asksForNothing(claims: Claims): boolean {
  return Object.values(claims).every((value) => Array.isArray(value) && value.length === 0);
}

/**
 * Every way in which `value` is not a claims map (docs/behaviour/registry.md#claims); empty when it is one. At most one
 * violation per key, and one for the whole map when it has too many keys.
 */
export function claimsViolations(value: unknown, limits: ClaimLimits = CLAIM_LIMITS): ClaimsViolation[] {
  if (!isRecord(value)) return [{ message: 'claims must be a map of strings or arrays of strings' }];
  const keys = Object.keys(value);
  if (keys.length > limits.keys) {
    return [{ message: `claims have ${keys.length} keys, at most ${limits.keys} are allowed` }];
  }
  return keys.flatMap((key) => {
    const fault = tooLong(key, limits) ? 'key is too long' : valueFault(value[key], limits);
    return fault === undefined ? [] : [{ key, message: `claim ${quoteKey(key)}: ${fault}` }];
  });
}

/**
 * A claims map as plain data: `__proto__` and `constructor` are ordinary keys in it. Fails with `claims/invalid` for the
 * first violation.
 */
export function parseClaims(value: unknown, limits: ClaimLimits = CLAIM_LIMITS): Claims {
  const [violation] = claimsViolations(value, limits);
  if (violation) throw new SkepError('claims/invalid', { message: violation.message });
  const claims = emptyClaims();
  if (!isRecord(value)) return claims;
  for (const key of Object.keys(value)) {
    const held = value[key];
    if (isClaimValue(held)) claims[key] = held;
  }
  return claims;
}

/** True for a string or an array of strings only. */
export function isClaimValue(value: unknown): value is ClaimValue {
  return typeof value === 'string' || (Array.isArray(value) && value.every(isString));
}

/** The texts of a value as claims hold them: numbers, booleans, objects and null contribute nothing. */
export function textsOf(value: unknown): string[] {
  const list: unknown[] = Array.isArray(value) ? value : [value];
  return list.filter(isString);
}

function valueFault(value: unknown, limits: ClaimLimits): string | undefined {
  if (typeof value === 'string') return tooLong(value, limits) ? 'value is too long' : undefined;
  if (!Array.isArray(value)) return 'value must be a string or array of strings';
  if (value.length > limits.valuesPerKey) {
    return `array has ${value.length} elements, at most ${limits.valuesPerKey} are allowed`;
  }
  const wrong = value.findIndex((element) => !isString(element));
  if (wrong >= 0) return `array element [${wrong}] must be a string`;
  const long = value.findIndex((element) => isString(element) && tooLong(element, limits));
  return long < 0 ? undefined : `array element [${long}] is too long`;
}

function tooLong(text: string, limits: ClaimLimits): boolean {
  return Buffer.byteLength(text) > limits.bytesPerText;
}

/** Keys come from strangers: a message shows their beginning only. */
function quoteKey(key: string): string {
  return JSON.stringify(key.length > 100 ? `${key.slice(0, 100)}…` : key);
}

function isString(value: unknown): value is string {
  return typeof value === 'string';
}

function emptyClaims(): Record<string, ClaimValue> {
  return Object.setPrototypeOf({}, null);
}
