import { type ClaimLimits, claimsViolations } from '@skep/auth/claims/claims.ts';
import { z } from 'zod';
import { claimLimitsShape, resolvedClaimLimits } from '../shape/limits.ts';
import type { ConfigPath, Problem } from '../shape/problem.ts';

// Reads what is readable and takes anything else as absent: the shape has reported that already.
const labelled = z.looseObject({ claims: z.unknown().optional() }).catch({});
const lists = z.record(z.string(), z.array(z.unknown()).catch([])).catch({});
const authz = z.looseObject({ roles: lists.optional() }).catch({});
const draft = z
  .looseObject({
    sources: z.array(labelled).catch([]),
    registries: z.array(labelled).catch([]),
    auth: z.looseObject({ authz: authz.optional() }).catch({}).optional(),
    limits: z
      .looseObject({ claims: claimLimitsShape.optional().catch(undefined) })
      .catch({})
      .optional(),
  })
  .catch({ sources: [], registries: [] });

/** Everything wrong with the claims of sources, registries and roles, by the limits that stand beside them. */
export function claimProblems(value: unknown): Problem[] {
  const { sources, registries, auth, limits } = draft.parse(value);
  const most = resolvedClaimLimits(limits);
  const check = (claims: unknown, path: ConfigPath): Problem[] => claimsProblems(claims, path, most);
  return [
    ...sources.flatMap(({ claims }, index) => check(claims, ['sources', index, 'claims'])),
    ...registries.flatMap(({ claims }, index) => check(claims, ['registries', index, 'claims'])),
    ...Object.entries(auth?.authz?.roles ?? {}).flatMap(([role, rules]) =>
      rules.flatMap((rule, index) => check(rule, ['auth', 'authz', 'roles', role, index])),
    ),
  ];
}

/** Every key that is wrong is named at its own place (specification §1.3.5); absent claims are none. */
export function claimsProblems(claims: unknown, path: ConfigPath, limits: ClaimLimits): Problem[] {
  if (claims === undefined) return [];
  return claimsViolations(claims, limits).map(({ key, message }) => ({
    path: key === undefined ? path : [...path, key],
    message,
  }));
}
