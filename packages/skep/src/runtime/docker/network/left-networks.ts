import {
  anything,
  listOf,
  members,
  optional,
  orEmpty,
  readAs,
  recordOf,
  text,
} from '@skep/core/settings/shape.ts';
import type { EngineClient } from '../client.ts';
import { containerPath } from '../containers.ts';
import { isAuxiliary, MAKER_LABEL, MANAGED, NAME_LABEL, NETWORK_LABEL, OWNER_LABEL } from '../labels.ts';
import { readAnswer } from '../read-answer.ts';
import { removeHolders, spareOf } from './holder.ts';
import { SHARED_NETWORK } from './old-shared-network.ts';
import { removeNetwork } from './workload-networks.ts';

const containerShape = members({
  Config: members({ Labels: orEmpty(recordOf(text), {}) }),
  NetworkSettings: members({ Networks: orEmpty(recordOf(anything), {}) }),
});

/** Which networks that do not name it a container was put on: the one that all shared, or one made ahead, by its name. */
export async function unnamedNetworks(
  client: EngineClient,
  container: string,
): Promise<{ readonly shared: boolean; readonly spare?: string }> {
  const seen = readAs(containerShape, (await client.call({ path: containerPath(container, '/json') })).body);
  if (seen === undefined) return { shared: false };
  const spare = spareOf(seen.Config.Labels);
  const shared = Object.hasOwn(seen.NetworkSettings.Networks, SHARED_NETWORK);
  return { shared, ...(spare === undefined ? {} : { spare }) };
}

/** Removes a network that was made ahead of a workload which is gone, with its holder. Idempotent. */
export async function removeSpare(client: EngineClient, name: string): Promise<void> {
  await removeHolders(client, name);
  await removeNetwork(client, name);
}

const networksShape = listOf(members({ Id: text, Name: text, Labels: orEmpty(recordOf(text), {}) }));
const containersShape = listOf(
  members({
    Id: text,
    Labels: orEmpty(recordOf(text), {}),
    HostConfig: orEmpty(members({ NetworkMode: optional(text) }), {}),
    NetworkSettings: orEmpty(
      members({ Networks: orEmpty(recordOf(members({ NetworkID: optional(text) })), {}) }),
      { Networks: {} },
    ),
  }),
);

/** What is left of a network that was made ahead. */
export interface Found {
  /** What the engine finds the network by; absent where only a holder of it is left. */
  readonly id?: string;
  /** The network's. */
  readonly name: string;
  /** See `Spares.maker`. */
  readonly maker: string;
}

/** What was made ahead for `owner`, used or not. */
export async function sparesOf(client: EngineClient, owner: string): Promise<readonly Found[]> {
  const filters = { label: [MANAGED, `${OWNER_LABEL}=${owner}`] };
  const [networks, containers] = await Promise.all([
    client.ask('list networks', { path: '/networks', filters }),
    client.ask('list containers', { path: '/containers/json', query: { all: '1' }, filters }),
  ]);
  const isOurs = (labels: Labels): boolean =>
    labels[OWNER_LABEL] === owner && labels[NAME_LABEL] === undefined && labels[NETWORK_LABEL] !== undefined;
  const makerOf = (labels: Labels): string => labels[MAKER_LABEL] ?? '';
  const found = readAnswer(networksShape, networks.body)
    .filter(({ Labels }) => isOurs(Labels))
    .map(({ Id, Name, Labels }) => ({ id: Id, name: Name, maker: makerOf(Labels) }));
  const names = new Set(found.map(({ name }) => name));
  const alone = readAnswer(containersShape, containers.body)
    .filter(({ Labels }) => isOurs(Labels) && isAuxiliary(Labels))
    .map(({ Labels }) => ({ name: Labels[NETWORK_LABEL] ?? '', maker: makerOf(Labels) }))
    .filter(({ name }) => !names.has(name));
  return [...found, ...alone];
}

type Labels = Readonly<Record<string, string>>;

/** Removes those that no container uses, with their holders; fails as the first does that cannot be removed. Idempotent. */
export async function removeUnused(
  client: EngineClient,
  found: readonly Pick<Found, 'id' | 'name'>[],
): Promise<void> {
  const failures: unknown[] = [];
  for (const one of found) await removeIfUnused(client, one).catch((error) => void failures.push(error));
  if (failures.length > 0) throw failures[0];
}

async function removeIfUnused(client: EngineClient, one: Pick<Found, 'id' | 'name'>): Promise<void> {
  if (await isUsed(client, one)) return;
  await removeHolders(client, one.name);
  if (one.id !== undefined) await removeNetwork(client, one.id);
}

/** True where a container, running or not, that is no holder is on it or joins its holder. */
async function isUsed(client: EngineClient, { id = '', name }: Pick<Found, 'id' | 'name'>): Promise<boolean> {
  const { body } = await client.ask('list containers', { path: '/containers/json', query: { all: '1' } });
  const all = readAnswer(containersShape, body);
  const isHolder = ({ Labels }: (typeof all)[number]) =>
    isAuxiliary(Labels) && Labels[NETWORK_LABEL] === name;
  const ways = new Set([id, name, ...all.filter(isHolder).map((one) => `container:${one.Id}`)]);
  return all.some((one) => {
    const { HostConfig, NetworkSettings } = one;
    const networks = Object.entries(NetworkSettings.Networks).flatMap(([key, { NetworkID = '' }]) => [
      key,
      NetworkID,
    ]);
    return !isHolder(one) && [HostConfig.NetworkMode ?? '', ...networks].some((way) => way && ways.has(way));
  });
}
