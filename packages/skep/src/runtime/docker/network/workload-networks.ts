import { members, text } from '@skep/core/settings/shape.ts';
import type { EngineClient } from '../client.ts';
import { containerIds } from '../containers.ts';
import { engineMessage, refused } from '../failure.ts';
import { MANAGED, MANAGED_LABEL, NAME_LABEL, NETWORK_LABEL, OWNER_LABEL } from '../labels.ts';
import { observedNetworks, type ObservedNetwork } from '../observed.ts';
import { readAnswer } from '../read-answer.ts';
import { machineRanges } from './machine-ranges.ts';
import { rangeText, subnetCandidates, type Range } from './subnets.ts';

/** `outward` leads out of the machine; `internal` only to the other container on it. */
export type NetworkKind = 'outward' | 'internal';

export interface NetworkWish {
  /** The workload's. */
  readonly name: string;
  readonly owner: string;
  readonly kind: NetworkKind;
  /** Exactly this one, or none: addresses of it are written down elsewhere. */
  readonly subnet?: Range;
}

export interface MadeNetwork {
  readonly id: string;
  readonly name: string;
  readonly subnet: Range;
}

/** What is asked of the engine besides its client. */
export interface NetworkMaker {
  readonly client: EngineClient;
  /** A fresh token; see `RuntimeEnvironment.randomId`. */
  readonly randomId: () => string;
}

/** More than networks that are made at once are likely to meet in. */
const MAX_SUBNETS_TRIED = 64;
/** A name is taken by a leftover, then by somebody else; the third one nobody has. */
const MAX_NAMES_TRIED = 3;

/**
 * Makes a network for one workload (docs/behaviour/run.md#networks), in a small subnet of our choice: engines' own pools
 * hold 30 networks. The engine refuses subnets that it uses, whoever asks at the same time, and then the next one is
 * tried. Everything goes by id, because engines before version 25 let two networks have one name. Fails with
 * `runtime/engine-refused`.
 */
export async function makeNetwork(maker: NetworkMaker, wish: NetworkWish): Promise<MadeNetwork> {
  const key = `${wish.owner}/${wish.name}/${wish.kind}`;
  const subnets = wish.subnet ? [wish.subnet].values() : subnetCandidates(key, await machineRanges());
  for (const subnet of subnets.take(MAX_SUBNETS_TRIED)) {
    const made = await makeIn(maker, wish, subnet);
    if (made !== undefined) return made;
  }
  const message = wish.subnet
    ? `its addresses, ${rangeText(wish.subnet)}, are used by something else by now`
    : 'no private address range is free on this machine';
  throw refused(`make a network for "${wish.name}"`, { status: 409, body: { message } });
}

/** Undefined where the subnet is used. A name that is taken by a leftover of the same workload is freed. */
async function makeIn(
  { client, randomId }: NetworkMaker,
  wish: NetworkWish,
  subnet: Range,
): Promise<MadeNetwork | undefined> {
  const { podman } = await client.about();
  let name = networkName(wish.name, wish.kind);
  for (let left = MAX_NAMES_TRIED; ; left -= 1) {
    const body = networkBody({ wish, name, subnet, podman });
    const answer = await client.call({ method: 'POST', path: '/networks/create', body });
    if (answer.status === 201) return { id: readAnswer(createdShape, answer.body).Id, name, subnet };
    const message = engineMessage(answer.body);
    const taken = answer.status === 409 || /already exists/i.test(message);
    if (!taken && /overlap|already used/i.test(message)) return undefined;
    if (!taken || left === 1) throw refused(`make a network for "${wish.name}"`, answer);
    if (!(await removeLeftovers(client, wish, name))) name = `${name}-${randomId().slice(0, 8)}`;
  }
}

const createdShape = members({ Id: text });

/** For people: what leads to a network is its id, and labels. */
function networkName(workload: string, kind: NetworkKind): string {
  return kind === 'internal' ? `skep-${workload}-internal` : `skep-${workload}`;
}

interface NetworkBody {
  readonly wish: NetworkWish;
  readonly name: string;
  readonly subnet: Range;
  readonly podman: boolean;
}

/**
 * The body of `POST /networks/create`. Containers on it cannot speak with each other, but for the two of an internal one,
 * and the machine has no address on that: an engine's internal network leads to every service of the machine otherwise.
 */
function networkBody({ wish: { name: workload, owner, kind }, name, subnet, podman }: NetworkBody): object {
  const internal = kind === 'internal';
  const bridge = 'com.docker.network.bridge';
  return {
    Name: name,
    Driver: 'bridge',
    CheckDuplicate: true,
    EnableIPv6: false,
    Internal: internal,
    IPAM: { Driver: 'default', Config: [{ Subnet: rangeText(subnet) }] },
    // Podman refuses what it does not know, and separates networks by an option of its own.
    ...(podman
      ? {}
      : {
          Options: internal ? { [`${bridge}.inhibit_ipv4`]: 'true' } : { [`${bridge}.enable_icc`]: 'false' },
        }),
    Labels: {
      [MANAGED_LABEL]: 'true',
      [NAME_LABEL]: workload,
      [OWNER_LABEL]: owner,
      [NETWORK_LABEL]: kind,
    },
  };
}

/** The networks of a workload, the oldest first; of each kind the first one is the one that counts. */
export async function networksOf(
  client: EngineClient,
  workload: string,
): Promise<readonly ObservedNetwork[]> {
  const filters = { label: [MANAGED, `${NAME_LABEL}=${workload}`] };
  const { body } = await client.ask('list networks', { path: '/networks', filters });
  // Not every engine knows every filter.
  return observedNetworks(body).filter(({ labels }) => labels[NAME_LABEL] === workload);
}

/** Removes the networks of a workload that no container uses any more. Idempotent. */
export async function removeNetworks(client: EngineClient, workload: string): Promise<void> {
  const all = await networksOf(client, workload);
  await Promise.all(all.map(({ id }) => removeNetwork(client, id)));
}

/** Idempotent; one to which something is connected stays. */
export async function removeNetwork(client: EngineClient, id: string): Promise<void> {
  const request = { method: 'DELETE', path: `/networks/${id}` } as const;
  // 403 and 409: it is still used.
  await client.ask(`remove network "${id}"`, request, 403, 404, 409);
}

/** True where something was removed; what a container refers to, running or not, stays. */
async function removeLeftovers(client: EngineClient, wish: NetworkWish, name: string): Promise<boolean> {
  const ours = (await networksOf(client, wish.name)).filter(
    (one) => one.name === name && one.labels[OWNER_LABEL] === wish.owner,
  );
  let removed = false;
  for (const { id } of ours) {
    if (await isReferredTo(client, id)) continue;
    await removeNetwork(client, id);
    removed = true;
  }
  return removed;
}

/** True where a container, running or not, is on a network. */
export async function isReferredTo(client: EngineClient, id: string): Promise<boolean> {
  return (await containerIds(client, { network: [id] })).length > 0;
}
