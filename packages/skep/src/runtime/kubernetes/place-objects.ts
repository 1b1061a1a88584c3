import { SkepError } from '@skep/core/errors/skep-error.ts';
import type { WorkloadSpec } from '../runtime.ts';
import type { ClusterApi, Kind, Members, ObjectRef } from './cluster-api.ts';
import { isConflict } from './failure.ts';
import { MANAGED, NAME, objectNames, ownLabels, STATE } from './names.ts';
import type { Manifest } from './objects.ts';
import { within } from './pod-life.ts';

/** Which objects are a workload's own: those that carry its name and the mark of this Skep, and no others. */
export interface Whose {
  readonly name: string;
  readonly owner: string;
}

export function isWhose(object: Members, { name, owner }: Whose): boolean {
  const labels = within(object, 'metadata', 'labels');
  const own = ownLabels(name, owner);
  return [MANAGED, NAME, STATE].every((key) => labels[key] === own[key]);
}

/** For an object that somebody else made, which is never changed. */
export function takenBy({ kind, name }: ObjectRef, namespace: string): SkepError {
  return new SkepError('runtime/name-taken', {
    message: `the namespace "${namespace}" has a ${kind} "${name}" that this Skep did not make`,
    hint: 'choose another --name, or remove it with the tool that made it',
  });
}

/** Applies an object that is this workload's, or not there yet. Fails with `runtime/name-taken` for any other. */
export async function place(api: ClusterApi, whose: Whose, manifest: Manifest): Promise<void> {
  const ref = { kind: manifest.kind as Kind, name: manifest.metadata.name };
  const there = await api.get(ref);
  if (there !== undefined && !isWhose(there, whose)) throw takenBy(ref, api.namespace);
  const { uid } = there === undefined ? {} : within(there, 'metadata');
  const metadata = { ...manifest.metadata, ...(uid === undefined ? {} : { uid }) };
  try {
    // What appeared since it was looked for has other fields, which is a conflict where nobody forces anything.
    await api.apply({ ...manifest, metadata }, there !== undefined);
  } catch (error) {
    if (there === undefined && isConflict(error)) throw takenBy(ref, api.namespace);
    throw error;
  }
}

/** Puts the values of secret variables where the pod reads them; without any, there is no such object. */
export async function placeSecrets(
  api: ClusterApi,
  whose: Whose,
  secretEnv: WorkloadSpec['secretEnv'] = {},
): Promise<void> {
  const ref = { kind: 'Secret', name: objectNames(whose.name).secret } as const;
  if (Object.keys(secretEnv).length === 0) return remove(api, whose, ref);
  const data = Object.entries(secretEnv).map(([key, value]) => [key, Buffer.from(value).toString('base64')]);
  const manifest = {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name: ref.name, labels: ownLabels(whose.name, whose.owner) },
    type: 'Opaque',
    data: Object.fromEntries(data) as Readonly<Record<string, string>>,
  };
  const there = await api.get(ref);
  if (there !== undefined) return place(api, whose, manifest);
  try {
    // Nobody else's keys would be a conflict, so that it is not there is said by making it.
    await api.create(manifest);
  } catch (error) {
    throw isConflict(error) ? takenBy(ref, api.namespace) : error;
  }
}

/** Everything of a workload but its StatefulSet and pod, but for what `keep` names. Idempotent. */
export async function removeBeside(
  api: ClusterApi,
  whose: Whose,
  keep: readonly ObjectRef[] = [],
): Promise<void> {
  const { secret, policy, service, headless } = objectNames(whose.name);
  const all: readonly ObjectRef[] = [
    { kind: 'Service', name: service },
    { kind: 'Service', name: headless },
    { kind: 'Secret', name: secret },
    { kind: 'NetworkPolicy', name: policy },
  ];
  const isKept = ({ kind, name }: ObjectRef): boolean =>
    keep.some((one) => one.kind === kind && one.name === name);
  for (const ref of all) if (!isKept(ref)) await remove(api, whose, ref);
}

async function remove(api: ClusterApi, whose: Whose, ref: ObjectRef): Promise<void> {
  const there = await api.get(ref);
  if (there !== undefined && isWhose(there, whose)) await api.delete(ref, within(there, 'metadata')['uid']);
}
