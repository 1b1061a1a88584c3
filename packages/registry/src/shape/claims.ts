import { type ClaimLimits, claimsViolations, parseClaims } from '@skep/auth/claims/claims.ts';
import { canonicalClaims } from '@skep/auth/claims/same.ts';
import { z } from 'zod';
import type { ConfigPath, Problem } from './problem.ts';

/** Claims of a source or registry. What they may be depends on the limits: `claimsProblems` checks all of it. */
export const claims = z.unknown().meta({
  type: 'object',
  description: 'For each claim a text, or a list of texts that a caller must hold all of',
  additionalProperties: { anyOf: [{ type: 'string' }, { type: 'array', items: { type: 'string' } }] },
});

/** Names every key that is wrong at its own place; absent claims are none. */
export function claimsProblems(value: unknown, path: ConfigPath, limits: ClaimLimits): Problem[] {
  if (value === undefined) return [];
  return claimsViolations(value, limits).map(({ key, message }) => ({
    path: key === undefined ? path : [...path, key],
    message,
  }));
}

/** The canonical text of claims as written; absent claims are none. They must have been checked. */
export function claimSet(value: unknown, limits: ClaimLimits): string {
  return value === undefined ? '' : canonicalClaims(parseClaims(value, limits));
}
