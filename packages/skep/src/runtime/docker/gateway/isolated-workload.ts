import { bool, members, nullish, orEmpty, recordOf, text } from '@skep/core/settings/shape.ts';
import type { WorkloadSpec } from '../../runtime.ts';
import type { Connection } from '../container-body.ts';
import { containerPath } from '../containers.ts';
import { ISOLATION_LABEL, NETWORK_LABEL, OWNER_LABEL } from '../labels.ts';
import { change } from '../network/replace-gone-network.ts';
import { parseRange, rangeText } from '../network/subnets.ts';
import { makeNetwork, networksOf, removeNetwork, type NetworkMaker } from '../network/workload-networks.ts';
import type { ObservedNetwork } from '../observed.ts';
import { readAnswer } from '../read-answer.ts';
import { isGatewayUp, startGateway, type GatewayNetwork } from './gateway-container.ts';
import { ensureGatewayImage, type GatewayMaker } from './gateway-image.ts';
import { ISOLATION_STATE_LABEL, readIsolation, serverAddress, type Isolation } from './isolation.ts';

/**
 * Makes what the container of an isolated workload is made into: both networks, and the image of its gateway, so that
 * what cannot be made fails here. On failure neither network stays.
 */
export async function isolate(maker: NetworkMaker & GatewayMaker, spec: WorkloadSpec): Promise<Connection> {
  const { name, isolation: policy } = spec;
  const owner = spec.labels[OWNER_LABEL] ?? '';
  const made = await Promise.allSettled([
    makeNetwork(maker, { name, owner, kind: 'internal' }),
    makeNetwork(maker, { name, owner, kind: 'outward' }),
    ensureGatewayImage(maker),
  ]);
  const [internal, outward] = made;
  const failed = made.find((one) => one.status === 'rejected');
  if (failed !== undefined || policy === undefined || internal.status === 'rejected') {
    for (const one of [internal, outward])
      if (one.status === 'fulfilled') await removeNetwork(maker.client, one.value.id);
    throw failed?.reason;
  }
  const [port] = spec.ports;
  const { id, name: network, subnet } = internal.value;
  const isolation = { policy, internal: subnet, ...(port ? { port } : {}) };
  return {
    id,
    name: network,
    isolation,
    ...(outward.status === 'fulfilled' ? { outward: outward.value.id } : {}),
  };
}

const containerShape = members({
  Config: members({ Labels: nullish(recordOf(text)) }),
  State: members({ Running: bool }),
  NetworkSettings: members({ Networks: orEmpty(recordOf(members({ NetworkID: nullish(text) })), {}) }),
});

/**
 * Before a workload is started: an isolated one gets a gateway that listens, and networks that are gone once more. True
 * for one that is isolated, and has its gateway now; false for any other, and for none. Fails as `startGateway` does, and
 * with `runtime/engine-refused`.
 */
export async function guard(maker: NetworkMaker & GatewayMaker, name: string): Promise<boolean> {
  const { client } = maker;
  const { status, body } = await client.ask(`inspect "${name}"`, { path: containerPath(name, '/json') }, 404);
  if (status === 404) return false;
  const { Config, State, NetworkSettings } = readAnswer(containerShape, body);
  const labels = Config.Labels ?? {};
  const label = labels[ISOLATION_STATE_LABEL];
  if (label === undefined && labels[ISOLATION_LABEL] !== 'true') return false;
  const isolation = readIsolation(label ?? '', name);
  if (State.Running && (await isGatewayUp(client, name))) return true;
  const owner = labels[OWNER_LABEL] ?? '';
  const wanted = { name, owner, isolation };
  const networks = await networksOf(client, name);
  const internal = networks.find(
    (one) => one.labels[NETWORK_LABEL] === 'internal' && one.subnet === rangeText(isolation.internal),
  );
  const attached = Object.keys(NetworkSettings.Networks);
  await startGateway(maker, {
    ...wanted,
    internal: {
      id: internal?.id ?? (await newInternal(maker, { ...wanted, attached })),
      subnet: isolation.internal,
    },
    outward: await outwardOf(maker, networks, wanted),
  });
  return true;
}

interface Wanted {
  readonly name: string;
  readonly owner: string;
  readonly isolation: Isolation;
}

/** With the addresses of the one that is gone: the server was told those. */
async function newInternal(
  maker: NetworkMaker,
  { name, owner, isolation, attached }: Wanted & { readonly attached: readonly string[] },
): Promise<string> {
  const subnet = isolation.internal;
  const { id } = await makeNetwork(maker, { name, owner, kind: 'internal', subnet });
  for (const network of attached)
    await change(maker.client, 'disconnect', { network, container: name, more: { Force: true } });
  const more = { EndpointConfig: { IPAMConfig: { IPv4Address: serverAddress(subnet) } } };
  await change(maker.client, 'connect', { network: id, container: name, more });
  return id;
}

async function outwardOf(
  maker: NetworkMaker,
  networks: readonly ObservedNetwork[],
  { name, owner }: Wanted,
): Promise<GatewayNetwork> {
  const known = networks.find((one) => one.labels[NETWORK_LABEL] === 'outward');
  const subnet = parseRange(known?.subnet ?? '');
  if (known !== undefined && subnet !== undefined) return { id: known.id, subnet };
  return makeNetwork(maker, { name, owner, kind: 'outward' });
}
