import { hasCode, SkepError } from '@skep/core/errors/skep-error.ts';
import type { RuntimeEnvironment } from '../environment.ts';
import type { WorkloadSpec } from '../runtime.ts';
import type { EngineClient } from './client.ts';
import type { Connection } from './container-body.ts';
import { removeContainer } from './containers.ts';
import { createContainer } from './create-container.ts';
import { makeVolumes, openVolumes, removeVolumesNamed } from './data-volumes.ts';
import { refuseFilesOfRoot } from './files-of-root.ts';
import { removeHolders } from './network/holder.ts';
import { removeNetwork } from './network/workload-networks.ts';

/** Where a workload gets its network. */
export interface Place {
  /** What that will be called, where it is being made already. */
  readonly coming?: string | undefined;
  /** Undefined for one that has none of its own. */
  readonly network: Promise<Connection | undefined>;
}

interface Maker {
  readonly client: EngineClient;
  readonly environment: RuntimeEnvironment;
}

/**
 * Makes what a workload consists of, its parts at once as far as an engine takes that: the volumes first, the container
 * while its network is still coming (decision 0454). On failure nothing stays, the network of its place included; fails as
 * `createContainer`, and as what makes the other parts.
 */
export async function createWorkload(
  spec: WorkloadSpec,
  { coming, network }: Place,
  { client, environment }: Maker,
): Promise<void> {
  const making = makeVolumes(client, spec);
  // What cannot be removed is found by its name; why it was not made is what the person must hear.
  const undo = (container: string) => removeContainer(client, container, `remove "${spec.name}"`);
  let isThere = false;
  const make = async (on: Connection | undefined): Promise<string> => {
    const id = await createContainer(client, spec, on);
    isThere = true;
    try {
      await openVolumes(client, spec);
      if (spec.insteadOfRoot === true) await refuseFilesOfRoot(client, spec, environment);
    } catch (error) {
      await undo(id).catch(() => {});
      throw error;
    }
    return id;
  };
  /** Without the holder of its network where that was removed meanwhile. */
  const makeOn = async (on: Connection | undefined): Promise<string> => {
    try {
      return await make(on);
    } catch (error) {
      if (on?.holder === undefined || !isGone(error)) throw error;
      return make({ ...on, holder: undefined });
    }
  };
  // An engine looks for the network of a container when it starts that.
  const early = coming && making.then(() => make({ id: coming, name: coming }));
  const [made, placed, begun] = await Promise.allSettled([making, network, early]);
  let id = begun.status === 'fulfilled' ? begun.value : undefined;
  try {
    if (made.status === 'rejected') throw made.reason;
    if (placed.status === 'rejected') throw placed.reason;
    // An engine may want the network to be there before it makes a container.
    const isWanted =
      !isThere && begun.status === 'rejected' && hasCode(begun.reason, 'runtime/engine-refused');
    if (begun.status === 'rejected' && !isWanted) throw begun.reason;
    if (id !== undefined && placed.value?.name !== coming) {
      await undo(id);
      id = undefined;
    }
    id ??= await makeOn(placed.value);
  } catch (error) {
    if (id !== undefined) await undo(id).catch(() => {});
    if (made.status === 'fulfilled') await removeVolumesNamed(client, made.value, 'stays');
    const {
      id: network,
      name,
      holder,
      dropped,
      outward,
    } = (placed.status === 'fulfilled' && placed.value) || {};
    // As long as a holder is on it a network stays.
    await dropped;
    if (holder && name) await removeHolders(client, name).catch(() => {});
    for (const one of [network, outward]) if (one) await removeNetwork(client, one);
    throw error;
  }
}

/** What is to be joined is not there any more. Older engines say so only when the container is started. */
function isGone(error: unknown): boolean {
  return (
    hasCode(error, 'runtime/engine-refused') && error instanceof SkepError && error.detail['status'] === 404
  );
}
