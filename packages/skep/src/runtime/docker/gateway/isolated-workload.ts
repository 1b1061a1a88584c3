import { SkepError } from '@skep/core/errors/skep-error.ts';
import { bool, members, nullish, optional, orEmpty, recordOf, text } from '@skep/core/settings/shape.ts';
import type { EgressPolicy } from '../../../egress/policy.ts';
import type { WorkloadSpec } from '../../runtime.ts';
import type { Connection } from '../container-body.ts';
import { containerPath } from '../containers.ts';
import { NETWORK_LABEL, OWNER_LABEL } from '../labels.ts';
import { change } from '../network/replace-gone-network.ts';
import { parseRange, rangeText } from '../network/subnets.ts';
import {
  bridgeOf,
  makeNetwork,
  networksOf,
  removeNetwork,
  type NetworkMaker,
} from '../network/workload-networks.ts';
import type { Before } from '../start-container.ts';
import type { ObservedNetwork } from '../observed.ts';
import { readAnswer } from '../read-answer.ts';
import { isGatewayUp, startGateway, type GatewayNetwork } from './gateway-container.ts';
import { ensureGatewayImage, type GatewayMaker } from './gateway-image.ts';
import {
  isIsolated,
  ISOLATION_STATE_LABEL,
  readIsolation,
  serverAddress,
  type Isolation,
} from './isolation.ts';

/**
 * Makes what the container of an isolated workload is made into: both networks, and the image of its gateway, so that
 * what cannot be made fails here, with `runtime/invalid-workload` on Podman. On failure neither network stays.
 */
export async function isolate(
  maker: NetworkMaker & GatewayMaker,
  spec: WorkloadSpec,
  policy: EgressPolicy,
): Promise<Connection> {
  const { name } = spec;
  await refusePodman(maker, name);
  const owner = spec.labels[OWNER_LABEL] ?? '';
  const [networks, image] = await Promise.allSettled([
    makeNetworks(maker, { name, owner }),
    ensureGatewayImage(maker),
  ]);
  if (networks.status === 'rejected') throw networks.reason;
  const { internal, outward } = networks.value;
  if (image.status === 'rejected') {
    for (const one of [internal, outward]) await removeNetwork(maker.client, one.id);
    throw image.reason;
  }
  const { id, name: network, subnet } = internal;
  return {
    id,
    name: network,
    isolation: { policy, internal: subnet, ports: spec.ports },
    outward: outward.id,
  };
}

/** Its internal networks end in the machine, or in what all servers of a user share (decision 0285). */
async function refusePodman({ client }: NetworkMaker, name: string): Promise<void> {
  if (!(await client.about()).podman) return;
  throw new SkepError('runtime/invalid-workload', {
    message: `workload "${name}" cannot be isolated: Podman has no network that the machine is not part of`,
    hint: 'use Docker or, for a package, --runtime sandbox; --isolate-network=false runs it without',
  });
}

/** Both or, on failure, neither. */
async function makeNetworks(maker: NetworkMaker, wish: { readonly name: string; readonly owner: string }) {
  const outward = await makeNetwork(maker, { ...wish, kind: 'outward' });
  try {
    return {
      outward,
      internal: await makeNetwork(maker, { ...wish, kind: 'internal', outward: outward.id }),
    };
  } catch (error) {
    await removeNetwork(maker.client, outward.id);
    throw error;
  }
}

const containerShape = members({
  Config: members({ Labels: nullish(recordOf(text)) }),
  State: members({ Running: bool, Status: optional(text) }),
  NetworkSettings: members({ Networks: orEmpty(recordOf(members({ NetworkID: nullish(text) })), {}) }),
});

/**
 * Before a workload is started: an isolated one gets a gateway that listens, and networks that are gone once more. Fails as
 * `startGateway` does, with `runtime/engine-refused`, and on Podman with `runtime/invalid-workload`.
 */
export async function guard(maker: NetworkMaker & GatewayMaker, name: string): Promise<Before> {
  const { client } = maker;
  const { status, body } = await client.ask(`inspect "${name}"`, { path: containerPath(name, '/json') }, 404);
  if (status === 404) return { isolated: false, again: false };
  const { Config, State, NetworkSettings } = readAnswer(containerShape, body);
  const labels = Config.Labels ?? {};
  const before = { isolated: isIsolated(labels), again: !State.Running && State.Status !== 'created' };
  if (!before.isolated) return before;
  const isolation = readIsolation(labels[ISOLATION_STATE_LABEL] ?? '', name);
  await refusePodman(maker, name);
  if (State.Running && (await isGatewayUp(client, name))) return before;
  const wanted = { name, owner: labels[OWNER_LABEL] ?? '', isolation };
  const networks = await networksOf(client, name);
  const inside = networks.filter((one) => one.labels[NETWORK_LABEL] === 'internal');
  const on = Object.entries(NetworkSettings.Networks).map(([key, { NetworkID }]) => NetworkID || key);
  const mine = inside.find(({ id, name: called }) => on.includes(id) || on.includes(called));
  const known = outwardOf(networks, mine?.parent);
  const outward = known ?? (await makeNetwork(maker, { ...wanted, kind: 'outward' }));
  // An internal one is gone with the bridge that it stands on, and of no use where the container is on another one.
  const stands = known && (mine?.parent ?? bridgeOf(known.id)) === bridgeOf(known.id);
  const there = stands ? mine : undefined;
  const isThere = there?.subnet === rangeText(isolation.internal);
  const attached = Object.keys(NetworkSettings.Networks);
  const id = isThere
    ? there.id
    : await newInternal(maker, { ...wanted, outward: outward.id, attached, inside });
  await startGateway(maker, { ...wanted, internal: { id, subnet: isolation.internal }, outward });
  // An engine goes on with what it was asked by a program that was killed. What cannot be removed goes with the workload.
  const others = networks.filter((one) => one.id !== id && one.id !== outward.id);
  for (const one of isThere ? others : others.filter((other) => !inside.includes(other)))
    if (one.labels[OWNER_LABEL] === wanted.owner) await removeNetwork(client, one.id).catch(() => {});
  return before;
}

interface Lost {
  readonly name: string;
  readonly owner: string;
  readonly isolation: Isolation;
  readonly outward: string;
  /** Names of networks that the workload is on. */
  readonly attached: readonly string[];
  /** What there is of internal networks of it, which cannot be used. */
  readonly inside: readonly ObservedNetwork[];
}

/** With the addresses of the one that is gone: the server was told those. */
async function newInternal(
  maker: NetworkMaker,
  { name, owner, isolation, outward, attached, inside }: Lost,
): Promise<string> {
  const { client } = maker;
  const subnet = isolation.internal;
  for (const network of attached)
    await change(client, 'disconnect', { network, container: name, more: { Force: true } });
  for (const one of inside) await removeNetwork(client, one.id);
  const { id } = await makeNetwork(maker, { name, owner, kind: 'internal', outward, subnet });
  const more = { EndpointConfig: { IPAMConfig: { IPv4Address: serverAddress(subnet) } } };
  await change(client, 'connect', { network: id, container: name, more });
  return id;
}

/** The one on whose bridge the internal one stands, where there are several; else the oldest. */
function outwardOf(
  networks: readonly ObservedNetwork[],
  parent: string | undefined,
): GatewayNetwork | undefined {
  const all = networks.filter((one) => one.labels[NETWORK_LABEL] === 'outward');
  const known = all.find(({ id }) => bridgeOf(id) === parent) ?? all[0];
  const subnet = parseRange(known?.subnet ?? '');
  return known && subnet && { id: known.id, subnet };
}
