import type { Role } from '../claims/roles.ts';
import type { Identity } from './identity.ts';

/** What an identity provider may say about its callers; all of it where a member is absent. */
export interface ProviderGrants {
  /** Roles that its tokens may lead to. */
  readonly roles?: readonly Role[] | undefined;
  /** Claims that count; `iss`, which is checked, always does. */
  readonly claims?: readonly string[] | undefined;
}

/**
 * What is left of an identity when its provider speaks for these claims and roles only. Whatever decides looks at claims and
 * roles; subject, name and address stay for logs.
 */
export function limitedIdentity(identity: Identity, { roles, claims }: ProviderGrants): Identity {
  const speaksFor = (key: string): boolean => key === 'iss' || (claims?.includes(key) ?? true);
  return {
    ...identity,
    groups: speaksFor('groups') ? identity.groups : [],
    claims: Object.fromEntries(Object.entries(identity.claims).filter(([key]) => speaksFor(key))),
    ...(roles === undefined ? {} : { grantable: roles }),
  };
}
