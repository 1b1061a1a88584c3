import { shownClaims } from '../../../access/stored-claims.ts';
import type { StoredRegistry } from '../../../store/rows.ts';

/** `RegistryInfo` of specification §2.6.2; `claims` is absent where there are none. */
export function registryInfo(registry: StoredRegistry): object {
  const { name, creationType, sources, createdAt, updatedAt } = registry;
  const claims = shownClaims(registry.claims);
  return { name, ...(claims === undefined ? {} : { claims }), creationType, sources, createdAt, updatedAt };
}
