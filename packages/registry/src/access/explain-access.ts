import { ROLES, type Role } from '@skep/auth/claims/roles.ts';
import { storedClaims, type ClaimSet } from './claim-set.ts';
import { decideRead } from './admin-scope.ts';
import type { Authority } from './authority.ts';
import { modeOf } from './caller.ts';
import type { Decision } from './decision.ts';
import { explain, type Explanation, type Shown } from './explain.ts';
import { decideGate, decideRole } from './gate.ts';
import { decideVisibility } from './visibility.ts';

/** Something that carries claims, and its name. */
export interface Labelled {
  readonly name: string;
  readonly claims: ClaimSet;
}

/** What is asked about. Copies of the entry stand in order of the registry's sources, the highest priority first. */
export interface AccessFacts {
  readonly registry?: Labelled;
  readonly source?: Labelled;
  readonly entry?: { readonly name: string; readonly copies: readonly EntryCopy[] };
}

/** One source's entry of the name. */
export interface EntryCopy {
  readonly source: string;
  readonly claims: ClaimSet;
}

/** One decision about a caller, in words. */
export interface AccessFinding extends Explanation {
  readonly layer: 'role' | 'registry' | 'source' | 'entry';
  /** The role, registry, source or entry that it is about. */
  readonly subject: string;
  /** Of an entry: whose copy. */
  readonly source?: string;
  /** Of a copy that the caller may see: whose copy is served instead. */
  readonly shadowedBy?: string;
}

/**
 * What the enforcing functions say about a caller, layer by layer (docs/behaviour/registry.md#order-of-checks): roles,
 * the registry's gate, the source as the admin API scopes it, and every copy of the entry.
 */
export function accessFindings(authority: Authority, facts: AccessFacts, shown: Shown): AccessFinding[] {
  const { registry, source, entry } = facts;
  const found = (layer: AccessFinding['layer'], subject: string, decision: Decision): AccessFinding => ({
    layer,
    subject,
    ...explain(decision, shown),
  });
  return [
    ...ROLES.map((role) => found('role', role, decideRole(authority, role))),
    ...(registry === undefined
      ? []
      : [found('registry', registry.name, decideGate(authority, storedClaims(registry.claims)))]),
    ...(source === undefined
      ? []
      : [found('source', source.name, decideRead(authority, storedClaims(source.claims)))]),
    ...(entry === undefined ? [] : entryFindings(authority, { entry, registry, shown })),
  ];
}

/** Copies shadow each other within a registry only. */
function entryFindings(
  authority: Authority,
  {
    entry,
    registry,
    shown,
  }: {
    readonly entry: NonNullable<AccessFacts['entry']>;
    readonly registry: Labelled | undefined;
    readonly shown: Shown;
  },
): AccessFinding[] {
  const decided = entry.copies.map((copy) => ({
    source: copy.source,
    explanation: explain(decideVisibility(authority, copy.claims), shown),
  }));
  const served = registry === undefined ? undefined : decided.find(({ explanation }) => explanation.allowed);
  return decided.map(({ source, explanation }, index) => ({
    layer: 'entry',
    subject: entry.name,
    source,
    ...explanation,
    ...(explanation.allowed && served !== undefined && served !== decided[index]
      ? { shadowedBy: served.source }
      : {}),
  }));
}

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
