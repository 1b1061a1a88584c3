import { hash } from 'node:crypto';
import type { RawClaims } from '@skep/auth/claims/claims.ts';
import { decodeClaimSet, type ClaimClass, type ClaimSet, type VisibleClasses } from './claim-set.ts';
import { isSuperAdmin, type Authority } from './authority.ts';
import { type Decision, deny, hideDenied, readDecision, unlessExempt } from './decision.ts';

/** Which claim classes of a snapshot exist for a caller. */
export interface Visibility {
  readonly visible: (claimClass: ClaimClass) => boolean;
  /** The same as a list, to walk over what is visible only; `all` for callers whom no claims are checked for. */
  readonly classes: VisibleClasses;
  /** Equal exactly for callers who see the same claim sets, on every replica; pages are kept by it. */
  readonly fingerprint: string;
}

/**
 * Whether entries that carry `claims` exist for the caller (docs/behaviour/registry.md#visibility). An entry without
 * claims is invisible in full authorization whatever the switches say (docs/behaviour/registry.md#visibility).
 */
export function decideVisibility(authority: Authority, claims: ClaimSet): Decision {
  return decideDecoded(authority, decodeClaimSet(claims));
}

/** What callers see of one snapshot. */
export type SnapshotVisibility = (authority: Authority) => Visibility;

/**
 * Decides every class once, so that a page walk only looks up numbers: sets are decoded once, and a caller whose authority is the same
 * object as before is not decided again. Forgets a caller when its authority is forgotten elsewhere.
 */
export function snapshotVisibility(claimSets: readonly ClaimSet[]): SnapshotVisibility {
  const decoded = claimSets.map((text) => ({ text, claims: decodeClaimSet(text) }));
  const known = new WeakMap<Authority, Visibility>();
  return (authority) => {
    const visibility = known.get(authority) ?? visibilityOf(authority, decoded);
    known.set(authority, visibility);
    return visibility;
  };
}

interface DecodedSet {
  readonly text: ClaimSet;
  readonly claims: RawClaims | undefined;
}

function visibilityOf(authority: Authority, sets: readonly DecodedSet[]): Visibility {
  const visible = sets.map(({ claims }) => decideDecoded(authority, claims).allowed);
  const isChecked = authority.kind === 'full' && !isSuperAdmin(authority);
  // By text and not by number: the numbers of two snapshots, or of two replicas, need not agree.
  const seen = sets.filter((_, index) => visible[index]).map(({ text }) => text);
  return {
    visible: (claimClass) => visible[claimClass] === true,
    classes: isChecked ? visible.flatMap((sees, claimClass) => (sees ? [claimClass] : [])) : 'all',
    fingerprint: hash('sha256', JSON.stringify(seen.sort()), 'base64url'),
  };
}

function decideDecoded(authority: Authority, claims: RawClaims | undefined): Decision {
  const decision = unlessExempt(authority, (caller) =>
    claims === undefined
      ? deny('access/hidden', { reason: 'claims-corrupt' })
      : readDecision(caller, claims, 'closed'),
  );
  return hideDenied(decision);
}
