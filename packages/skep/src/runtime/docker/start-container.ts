import { containerPath } from './containers.ts';
import { startFailure } from './failure.ts';
import { wakeHolder } from './network/holder.ts';
import { goneNetwork, replaceGoneNetwork } from './network/replace-gone-network.ts';
import type { NetworkMaker } from './network/workload-networks.ts';

/**
 * Starts the container of a workload, a second time where the first failed for what can be put right: its network was removed
 * behind its back, or what holds that does not run. An `isolated` one never gets another network here: what is put in place
 * leads out. Fails with `runtime/start-failed` or `runtime/no-such-workload`.
 */
export async function startContainer(maker: NetworkMaker, name: string, isolated: boolean): Promise<void> {
  const begin = () => maker.client.call({ method: 'POST', path: containerPath(name, '/start') });
  const mend = (gone: string | undefined): Promise<boolean> =>
    gone === undefined ? wakeHolder(maker, name) : replaceGoneNetwork(maker, { container: name }, gone);
  let answer = await begin();
  if (answer.status >= 400 && !isolated && (await mend(goneNetwork(answer)))) answer = await begin();
  if (answer.status >= 400) throw startFailure(name, answer);
}
