import type { Role } from '@skep/auth/claims/roles.ts';
import { limitedField } from '@skep/core/audit/audit-event.ts';
import type { Authority } from '../access/authority.ts';
import { userName } from '../access/caller.ts';

const ROLE_NAMES: Readonly<Record<Role, string>> = {
  superAdmin: 'super_admin',
  manageSources: 'manage_sources',
  manageRegistries: 'manage_registries',
  manageEntries: 'manage_entries',
};

/** Who did it. Members without a value are left out. */
export function subjectsOf(authority: Authority | undefined): Record<string, string> {
  if (authority === undefined) return { identity: 'unknown' };
  if (authority.kind === 'anonymous') return { identity: 'anonymous' };
  const { identity } = authority;
  const roles = authority.kind === 'full' ? authority.roles.map((role) => ROLE_NAMES[role]) : [];
  const members = { sub: identity.subject, user: userName(identity), role: roles.join(',') };
  return Object.fromEntries(
    Object.entries(members).flatMap(([name, value]) => (value === '' ? [] : [[name, limitedField(value)]])),
  );
}
