import { decideRead } from '../../../access/admin-scope.ts';
import { decideRole } from '../../../access/gate.ts';
import { shownClaims, storedClaims } from '../../../access/claim-set.ts';
import type { StoredRegistry } from '../../../store/rows.ts';
import type { AdminCall } from '../admin-route.ts';

/** How a registry is shown; `claims` is undefined where there are none. */
export function registryInfo(registry: StoredRegistry) {
  const { name, creationType, sources, createdAt, updatedAt } = registry;
  const claims = shownClaims(registry.claims);
  return { name, claims, creationType, sources, createdAt, updatedAt };
}

/**
 * `registryInfo` as the caller may see it: without the names of sources that are hidden from it. Whoever manages registries
 * sees all of them, because replacing a registry replaces all its links, and the entries listing names them too.
 */
export async function registryInfoFor(
  call: AdminCall,
): Promise<(registry: StoredRegistry) => ReturnType<typeof registryInfo>> {
  if (decideRole(call.authority, 'manageRegistries').allowed) return registryInfo;
  const sources = await call.store.listSources();
  const hidden = new Set(
    sources.flatMap(({ name, claims }) =>
      decideRead(call.authority, storedClaims(claims)).allowed ? [] : [name],
    ),
  );
  return (registry) =>
    registryInfo({ ...registry, sources: registry.sources.filter((name) => !hidden.has(name)) });
}
