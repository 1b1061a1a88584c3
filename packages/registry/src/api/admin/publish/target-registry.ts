import { SkepError } from '@skep/core/errors/skep-error.ts';
import { decideGate, enterGate } from '../../../access/gate.ts';
import { storedClaims } from '../../../access/stored-claims.ts';
import type { StoredRegistry } from '../../../store/rows.ts';
import type { AdminCall } from '../admin-route.ts';
import type { Target } from './publish-entry.ts';

/** The registry of the path, once the caller has passed its gate: 404 before 403, as for its readers. */
export async function enterRegistry(call: AdminCall, name: string): Promise<StoredRegistry> {
  const registry = await call.store.readRegistry(name);
  if (registry === undefined) throw new SkepError('registry/unknown-registry');
  enterGate(call.authority, storedClaims(registry.claims));
  return registry;
}

/** The managed source among those of a registry. */
export function targetIn({ name, sources }: StoredRegistry): Target {
  return {
    accepts: (managed) => sources.includes(managed.name),
    missing: `registry "${name}" has no managed source`,
  };
}

/** The managed source, whichever registry lists it. */
export const ANY_TARGET: Target = {
  accepts: () => true,
  missing: 'no managed source available for publishing',
};

/** A registry that lists the source and that the caller may enter, the first by name; undefined where there is none. */
export async function registryServing(call: AdminCall, source: string): Promise<string | undefined> {
  const registries = await call.store.listRegistries();
  return registries.find(
    ({ sources, claims }) =>
      sources.includes(source) && decideGate(call.authority, storedClaims(claims)).allowed,
  )?.name;
}
