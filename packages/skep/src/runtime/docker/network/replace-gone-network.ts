import { members, nullish, optional, readAs, recordOf, text } from '@skep/core/settings/shape.ts';
import type { EngineClient } from '../client.ts';
import { containerPath } from '../containers.ts';
import { engineMessage } from '../failure.ts';
import { NETWORK_LABEL, OWNER_LABEL } from '../labels.ts';
import { SHARED_NETWORK } from './old-shared-network.ts';
import { makeNetwork, networksOf, type NetworkMaker } from './workload-networks.ts';

const containerShape = members({
  Config: members({ Labels: nullish(recordOf(text)) }),
  HostConfig: members({ NetworkMode: text }),
  NetworkSettings: members({
    Networks: recordOf(members({ NetworkID: optional(text) })),
  }),
});

/** The network that the engine's refusal to start a container says is gone; undefined for any other refusal. */
export function goneNetwork(answer: { readonly status: number; readonly body: unknown }): string | undefined {
  const message = engineMessage(answer.body);
  // The second is Podman's.
  return answer.status < 400
    ? undefined
    : (/(?:^|: )network (\S+) not found/.exec(message)?.[1] ??
        /network with name or ID (\S+): network not found/.exec(message)?.[1]);
}

interface Without {
  readonly container: string;
  /** Whose network it is; the container where that is left out. */
  readonly workload?: string;
}

/**
 * Gives a container that is not running a network of its own in place of the one that was made for it, or that all shared
 * in earlier versions, and is gone. False where the network that is gone is somebody else's.
 */
export async function replaceGoneNetwork(
  maker: NetworkMaker,
  { container, workload = container }: Without,
  gone: string,
): Promise<boolean> {
  const { client } = maker;
  const answer = await client.call({ path: containerPath(container, '/json') });
  const { Config, HostConfig, NetworkSettings } = readAs(containerShape, answer.body) ?? {};
  const labels = Config?.Labels ?? {};
  const old = Object.entries(NetworkSettings?.Networks ?? {}).find(
    ([key, { NetworkID }]) => key === gone || NetworkID === gone,
  )?.[0];
  if (old === undefined) return false;
  const own = labels[NETWORK_LABEL];
  const ours =
    old === SHARED_NETWORK ||
    [own, `skep-${workload}`].some((name) => name && (old === name || old.startsWith(`${name}-`))) ||
    (own !== undefined && gone === HostConfig?.NetworkMode);
  if (!ours) return false;
  // Before it is taken off the old one: without a network it would start without one.
  const network = await anOutwardNetwork(maker, workload, labels[OWNER_LABEL] ?? '');
  // By name and by force is the one way that works for a network that does not exist.
  await change(client, 'disconnect', { network: old, container, more: { Force: true } });
  await change(client, 'connect', { network, container });
  return true;
}

/** The id of the one that the workload has, or of a new one. */
async function anOutwardNetwork(maker: NetworkMaker, name: string, owner: string): Promise<string> {
  const [known] = (await networksOf(maker.client, name)).filter(
    ({ labels }) => labels[NETWORK_LABEL] === 'outward',
  );
  return known?.id ?? (await makeNetwork(maker, { name, owner, kind: 'outward' })).id;
}

interface Change {
  readonly network: string;
  readonly container: string;
  readonly more?: object;
}

/** Connects a container with a network, or disconnects it. Fails with `runtime/engine-refused`. */
export async function change(
  client: EngineClient,
  action: 'connect' | 'disconnect',
  { network, container, more = {} }: Change,
): Promise<void> {
  const path = `/networks/${network}/${action}`;
  await client.ask(`${action} "${container}"`, {
    method: 'POST',
    path,
    body: { Container: container, ...more },
  });
}
