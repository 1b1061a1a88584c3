import { engineMessage, startFailure } from './failure.ts';
import { containerPath } from './containers.ts';
import { holderOf, readyHolder } from './network/holder.ts';
import { goneNetwork, replaceGoneNetwork } from './network/replace-gone-network.ts';
import type { NetworkMaker } from './network/workload-networks.ts';

/** What is known of a container before it is started. */
export interface Before {
  /** It never gets another network here: what is put in place leads out. */
  readonly isolated: boolean;
  /** It was started before, so that what its network is held by may not run any more, or not be what it should. */
  readonly again: boolean;
}

/**
 * Starts the container of a workload, a second time where the first failed for what can be put right: its network was removed
 * behind its back, or what holds that does not run. Fails with `runtime/start-failed` or `runtime/no-such-workload`.
 */
export async function startContainer(
  maker: NetworkMaker,
  name: string,
  { isolated, again }: Before,
): Promise<void> {
  const { client } = maker;
  const begin = () => client.call({ method: 'POST', path: containerPath(name, '/start') });
  const ready = async (): Promise<boolean> => {
    const holder = isolated ? undefined : await holderOf(client, name);
    return holder !== undefined && (await readyHolder(maker, name, holder));
  };
  if (again) await ready();
  let answer = await begin();
  const gone = goneNetwork(answer);
  const mended = async (): Promise<boolean> => {
    if (gone !== undefined) return replaceGoneNetwork(maker, { container: name }, gone);
    // Whoever started it at the same time may have been the one who had its holder run.
    return (await ready()) || /non running container/.test(engineMessage(answer.body));
  };
  if (answer.status >= 400 && !isolated && (await mended())) answer = await begin();
  if (answer.status >= 400) throw startFailure(name, answer);
}
