import { claimsProblems } from '../shape/claims.ts';
import { claimLimitsOf } from '../shape/limits.ts';
import type { ConfigPath, Problem } from '../shape/problem.ts';
import type { ConfigDraft } from './shape.ts';

/** Everything wrong with the claims of sources, registries and roles, by the limits that stand beside them. */
export function claimProblems({ sources = [], registries = [], auth, limits }: ConfigDraft): Problem[] {
  const most = claimLimitsOf(limits?.claims);
  const check = (claims: unknown, path: ConfigPath): Problem[] => claimsProblems(claims, path, most);
  return [
    ...sources.flatMap((source, index) => check(source?.claims, ['sources', index, 'claims'])),
    ...registries.flatMap((registry, index) => check(registry?.claims, ['registries', index, 'claims'])),
    ...Object.entries(auth?.authz?.roles ?? {}).flatMap(([role, rules]) =>
      // A role that nobody knows stands here as it was written.
      (Array.isArray(rules) ? rules : []).flatMap((rule, index) =>
        check(rule, ['auth', 'authz', 'roles', role, index]),
      ),
    ),
  ];
}
