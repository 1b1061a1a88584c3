import { ROLES } from '@skep/auth/claims/roles.ts';
import { isUnlabeled } from '@skep/auth/claims/claims.ts';
import type { RoleRules } from '@skep/auth/claims/roles.ts';
import type { AuthConfig } from './auth.ts';

/** What an operator must know about the mode the registry runs in (specification §6.4), one text per log line. */
export function authWarnings(auth: AuthConfig): string[] {
  if (auth.mode === 'anonymous') {
    return [
      'Anonymous mode: authentication and authorization are disabled; development only',
      ...(Object.keys(auth.unusedRoles).length > 0
        ? ['Authorization roles configured but auth is disabled (anonymous mode); role checks are skipped']
        : []),
    ];
  }
  const insecure = auth.providers.some(({ plainHttp }) => plainHttp === 'any')
    ? ['SKEP_REGISTRY_INSECURE_URL is set: identity providers may be reached over plain http']
    : [];
  if (auth.access.kind === 'auth-only') {
    return [
      'Authorization not configured, per-entry claims filtering disabled (auth-only mode)',
      ...insecure,
    ];
  }
  return [...ruleWarnings(auth.access.rules), ...insecure];
}

function ruleWarnings(rules: RoleRules): string[] {
  if (ROLES.every((role) => (rules[role] ?? []).length === 0)) {
    return ['Authorization is on and no role is granted to anybody: nothing can be administered'];
  }
  return ROLES.flatMap((role) =>
    (rules[role] ?? []).some(isUnlabeled)
      ? [`auth.authz.roles.${role} holds an empty rule, which matches nobody`]
      : [],
  );
}
