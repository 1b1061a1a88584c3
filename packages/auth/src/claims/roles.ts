import { isUnlabeled, textsOf, type Claims, type RawClaims } from './claims.ts';

/** What a caller may be allowed to do, in the order in which roles are always listed. */
export const ROLES = ['superAdmin', 'manageSources', 'manageRegistries', 'manageEntries'] as const;
export type Role = (typeof ROLES)[number];

/** `auth.authz.roles`: per role a list of claim maps. A role without maps is granted to nobody. */
export type RoleRules = Readonly<Partial<Record<Role, readonly Claims[]>>>;

/** Why one claim map does not grant its role. */
export type RuleMismatch =
  /** `{}` never matches: a forgotten condition must not make everyone an administrator. */
  | { readonly reason: 'empty-rule' }
  /** A rule matches, but the provider of the caller's token may not grant this role. */
  | { readonly reason: 'not-of-this-provider' }
  /** The caller's top-level claim is absent, holds no string, or shares no value with the rule. */
  | { readonly reason: 'no-shared-value'; readonly key: string; readonly wanted: readonly string[] };

/** How one role was decided: which map granted it, or why each did not. */
export type RoleTrace =
  | { readonly role: Role; readonly granted: true; readonly rule: number }
  | { readonly role: Role; readonly granted: false; readonly mismatches: readonly RuleMismatch[] };

/** Whose roles are asked for: the claims, and which roles their provider may grant (all where absent). */
export interface RoleCaller {
  readonly claims: RawClaims;
  readonly grantable?: readonly Role[] | undefined;
}

/** The roles of a caller in fixed order; superAdmin does not expand into the others. */
export function resolveRoles(caller: RoleCaller, rules: RoleRules): Role[] {
  return ROLES.filter((role) => traceRole(caller, rules, role).granted);
}

/**
 * Role resolution (docs/behaviour/registry.md#roles): any map of the list grants, every key of a map must match, a key
 * matches where the caller's values and the map's values intersect. Top-level claims only, strings only.
 */
export function traceRole({ claims, grantable }: RoleCaller, rules: RoleRules, role: Role): RoleTrace {
  const mismatches: RuleMismatch[] = [];
  for (const [index, rule] of (rules[role] ?? []).entries()) {
    const mismatch = mismatchOf(claims, rule);
    if (mismatch === undefined && (grantable?.includes(role) ?? true)) {
      return { role, granted: true, rule: index };
    }
    mismatches.push(mismatch ?? { reason: 'not-of-this-provider' });
  }
  return { role, granted: false, mismatches };
}

function mismatchOf(caller: RawClaims, rule: Claims): RuleMismatch | undefined {
  if (isUnlabeled(rule)) return { reason: 'empty-rule' };
  const key = Object.keys(rule).find((each) => {
    const held = Object.hasOwn(caller, each) ? textsOf(caller[each]) : [];
    return !textsOf(rule[each]).some((value) => held.includes(value));
  });
  return key === undefined ? undefined : { reason: 'no-shared-value', key, wanted: textsOf(rule[key]) };
}
