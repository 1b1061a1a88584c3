import { parseClaims, type Claims } from '@skep/auth/claims/claims.ts';
import type { RoleRules } from '@skep/auth/claims/roles.ts';
import type { Identity } from '@skep/auth/token/identity.ts';
import { authorityOf, resolveSwitches, type Authority, type SwitchSettings } from './authority.ts';

// Callers for the tests of this folder.

export function claims(value: unknown): Claims {
  return parseClaims(value);
}

export const RULES: RoleRules = {
  superAdmin: [claims({ role: 'super-admin' })],
  manageSources: [claims({ role: 'admin' })],
  manageRegistries: [claims({ role: 'admin' })],
  manageEntries: [claims({ role: 'writer' })],
};

/** A caller in full authorization whose token carries `token` beside what every token has. */
export function caller(token: Readonly<Record<string, unknown>>, settings: SwitchSettings = {}): Authority {
  return authorityOf({ kind: 'full', rules: RULES, switches: resolveSwitches(settings) }, identity(token));
}

/** The same caller in auth-only mode. */
export function signedIn(token: Readonly<Record<string, unknown>>): Authority {
  return authorityOf({ kind: 'auth-only' }, identity(token));
}

export const superAdmin = (settings: SwitchSettings = {}): Authority =>
  caller({ role: 'super-admin', org: 'acme' }, settings);

function identity(token: Readonly<Record<string, unknown>>): Identity {
  return {
    issuer: 'https://idp.test',
    subject: 'someone',
    name: '',
    email: '',
    groups: [],
    claims: { iss: 'https://idp.test', sub: 'someone', exp: 4_102_444_800, ...token },
  };
}
