import { SkepError } from '@skep/core/errors/skep-error.ts';
import { decideRead } from '../../../access/admin-scope.ts';
import { enforce } from '../../../access/decision.ts';
import { storedClaims } from '../../../access/claim-set.ts';
import type { StoredRegistry } from '../../../store/rows.ts';
import type { AdminCall } from '../admin-route.ts';

/** A registry that the caller may see. One that is hidden and one that is not there fail with the same words. */
export async function visibleRegistry(call: AdminCall, name: string): Promise<StoredRegistry> {
  const registry = await call.store.readRegistry(name);
  if (registry === undefined) throw unknownRegistry(name);
  enforce(decideRead(call.authority, storedClaims(registry.claims)), notFound(name));
  return registry;
}

export function unknownRegistry(name: string): SkepError {
  return new SkepError('registry/unknown-registry', { message: notFound(name) });
}

function notFound(name: string): string {
  return `registry not found: ${name}`;
}
