import { SkepError } from '@skep/core/errors/skep-error.ts';
import type { Claims } from '@skep/auth/claims/claims.ts';
import { decideDelete, decideUpdate } from '../../access/admin-scope.ts';
import type { Authority } from '../../access/authority.ts';
import { storedClaims } from '../../access/claim-set.ts';
import { enforce } from '../../access/decision.ts';
import { label } from '../../shape/texts.ts';
import type { StoredRegistry, StoredSource } from '../../store/rows.ts';
import { badRequest, word } from '../route/parameter.ts';

// What sources and registries have in common: a name, claims, and who made them.

type Resource = 'source' | 'registry';

const UNKNOWN = { source: 'store/source-unknown', registry: 'registry/unknown-registry' } as const;

/** Name of a source or registry in a path. Only new names have to have the form of one. */
export const resourceName = word('name', 'Name of the source or registry');

/** Fails with `registry/bad-request` for a name that nothing new may have. */
export function requireNewName(what: Resource, name: string, reserved?: ReadonlySet<string>): void {
  const [issue] = label.safeParse(name).error?.issues ?? [];
  if (issue !== undefined) throw badRequest(`invalid ${what} name: ${issue.message}`);
  if (reserved?.has(name)) throw badRequest(`invalid ${what} name: ${name} is a reserved word`);
}

export function unknownResource(what: Resource, name: string): SkepError {
  return new SkepError(UNKNOWN[what], { message: notFound(what, name) });
}

export function notFound(what: Resource, name: string): string {
  return `${what} not found: ${name}`;
}

type Existing = Pick<StoredSource | StoredRegistry, 'name' | 'creationType' | 'claims'>;

/** Whether the caller may give something that exists these claims, and replace all of it. */
export function enforceUpdate(
  what: Resource,
  authority: Authority,
  existing: Existing,
  claims: Claims,
): void {
  const decision = decideUpdate(authority, scopeOf(existing), claims);
  enforce(decision, {
    'config-created': `cannot modify config-created ${what} via API: ${existing.name}`,
  });
}

/** Whether the caller may delete what is called so. */
export function enforceDelete(
  what: Resource,
  name: string,
  authority: Authority,
  existing: Existing | undefined,
): void {
  if (existing === undefined) throw unknownResource(what, name);
  const decision = decideDelete(authority, scopeOf(existing));
  enforce(decision, { 'config-created': `cannot delete config-created ${what} via API: ${name}` });
}

function scopeOf({ creationType, claims }: Existing): Parameters<typeof decideDelete>[1] {
  return { creationType, claims: storedClaims(claims) };
}
