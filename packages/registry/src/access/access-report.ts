import { ROLES, type Role } from '@skep/auth/claims/roles.ts';
import type { Authority } from './authority.ts';
import { type AccessFacts, type AccessFinding, accessFindings } from './explain-access.ts';
import type { Shown } from './explain.ts';
import { modeOf } from './supposed-caller.ts';

/** What `explain` answers, on the command line and over HTTP. */
export interface AccessReport {
  readonly mode: 'anonymous' | 'auth-only' | 'full';
  readonly caller: { readonly subject: string; readonly roles: readonly Role[] };
  readonly findings: readonly AccessFinding[];
}

export function accessReport(
  authority: Authority,
  facts: AccessFacts,
  shown: Shown = 'values',
): AccessReport {
  const roles = authority.kind === 'full' ? authority.roles : [];
  return {
    mode: modeOf(authority).kind,
    caller: {
      subject: authority.kind === 'anonymous' ? '' : authority.identity.subject,
      roles: ROLES.filter((role) => roles.includes(role)),
    },
    findings: accessFindings(authority, facts, shown),
  };
}
