import type { EngineClient } from '../client.ts';
import { MANAGED_LABEL, NAME_LABEL } from '../labels.ts';
import { observedNetworks } from '../observed.ts';
import { isReferredTo, removeNetwork } from './workload-networks.ts';

/** Network that all workloads shared in versions before each had one of its own. */
export const SHARED_NETWORK = 'skep-external';

/**
 * Removes `skep-external` when no container, running or not, refers to it any more. A network of that name without our
 * label is somebody else's and stays, and so does that of a workload called `external`.
 */
export async function removeSharedNetwork(client: EngineClient): Promise<void> {
  const request = { path: '/networks', filters: { name: [SHARED_NETWORK] } };
  const { body } = await client.ask('list networks', request);
  for (const { id, name, labels } of observedNetworks(body)) {
    const shared =
      name === SHARED_NETWORK && labels[MANAGED_LABEL] === 'true' && labels[NAME_LABEL] === undefined;
    if (shared && !(await isReferredTo(client, id))) await removeNetwork(client, id);
  }
}
