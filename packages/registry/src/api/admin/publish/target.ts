import { SkepError } from '@skep/core/errors/skep-error.ts';
import { decideGate, enterGate } from '../../../access/gate.ts';
import { storedClaims } from '../../../access/claim-set.ts';
import type { Authority } from '../../../access/authority.ts';
import type { PublishFacts } from '../../../store/decisions.ts';
import type { NamedRegistry, StoredRegistry, StoredSource } from '../../../store/rows.ts';
import type { AdminCall } from '../admin-route.ts';

/** Where a door publishes to. */
export interface Target {
  /** The door is one of this registry. */
  readonly registry?: string;
  /** Whether the managed source is one that this door reaches; refuses who may not use the door. */
  readonly accepts: (managed: Pick<StoredSource, 'name'>, registry: NamedRegistry | undefined) => boolean;
  /** Said where there is none. */
  readonly missing: string;
}

/** The registry of the path, once the caller has passed its gate: 404 before 403, as for its readers. */
export async function enterRegistry(call: AdminCall, name: string): Promise<StoredRegistry> {
  const registry = await call.store.readRegistry(name);
  enterStored(call.authority, registry);
  return registry;
}

/**
 * The same by what this process serves, which asks no database. Who publishes is judged once more by what the transaction
 * finds; see `targetIn`.
 */
export async function enterServedRegistry(call: AdminCall, name: string): Promise<void> {
  const served = call.snapshot.registries.get(name);
  // Another replica may have made it a moment ago.
  if (served === undefined) await enterRegistry(call, name);
  else enterGate(call.authority, served.gate);
}

function enterStored<R extends NamedRegistry>(
  authority: Authority,
  registry: R | undefined,
): asserts registry is R {
  if (registry === undefined) throw new SkepError('registry/unknown-registry');
  enterGate(authority, storedClaims(registry.claims));
}

/** The managed source among those of a registry, which the caller may enter. */
export function targetIn(name: string, authority: Authority): Target {
  return {
    registry: name,
    accepts: (managed, registry) => {
      enterStored(authority, registry);
      return registry.sources.includes(managed.name);
    },
    missing: `registry "${name}" has no managed source`,
  };
}

/** The same in the transaction of a change: a registry may have been closed since the caller came to its door. */
export function requireTarget(
  { target: managed, registry }: Omit<PublishFacts, 'entry'>,
  { accepts }: Pick<Target, 'accepts'>,
): void {
  if (managed === undefined || !accepts(managed, registry)) throw new SkepError('registry/not-found');
}

/** The managed source, whichever registry lists it. */
export const ANY_TARGET: Target = {
  accepts: () => true,
  missing: 'no managed source available for publishing',
};

/** A registry that lists the source and that the caller may enter, the first by name; undefined where there is none. */
export function registryServing({ snapshot, authority }: AdminCall, source: string): string | undefined {
  const registries = [...snapshot.registries.values()];
  return registries.find(
    ({ sources, gate }) => sources.includes(source) && decideGate(authority, gate).allowed,
  )?.name;
}
