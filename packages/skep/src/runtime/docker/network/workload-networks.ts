import { members, text } from '@skep/core/settings/shape.ts';
import type { EngineClient } from '../client.ts';
import { containerIds } from '../containers.ts';
import { engineMessage, refused } from '../failure.ts';
import { MAKER_LABEL, MANAGED, MANAGED_LABEL, NAME_LABEL, NETWORK_LABEL, OWNER_LABEL } from '../labels.ts';
import { observedNetworks, type ObservedNetwork } from '../observed.ts';
import { readAnswer } from '../read-answer.ts';
import { machineRanges } from './machine-ranges.ts';
import { rangeText, subnetCandidates, type Range } from './subnets.ts';

/** Leads out of the machine. */
interface OutwardWish {
  readonly kind: 'outward';
}

/** Leads only to the other container on it. */
interface InternalWish {
  readonly kind: 'internal';
  /** Id of the workload's outward network, without which there is none. */
  readonly outward: string;
  /** Exactly this one, or none: addresses of it are written down elsewhere. */
  readonly subnet?: Range;
}

export type NetworkWish = (OutwardWish | InternalWish) & {
  /** The workload's; absent for one that is made ahead of a workload. */
  readonly name?: string;
  readonly owner: string;
  /** Of one that is made ahead: what it is called, and who makes it; see `Spares`. */
  readonly ahead?: { readonly called: string; readonly maker: string };
};

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
  /** Leaves it; an engine may go on with what it was asked. */
  readonly signal?: AbortSignal | undefined;
  /** Called once the engine has been asked. */
  readonly asked?: (() => void) | undefined;
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
  const key = `${wish.owner}/${wish.name ?? wish.ahead?.called}/${wish.kind}`;
  const only = wish.kind === 'internal' ? wish.subnet : undefined;
  const subnets = only ? [only].values() : subnetCandidates(key, machineRanges());
  for (const subnet of subnets.take(MAX_SUBNETS_TRIED)) {
    const made = await makeIn(maker, wish, subnet);
    if (made !== undefined) return made;
  }
  const message = only
    ? `its addresses, ${rangeText(only)}, are used by something else by now`
    : 'no private address range is free on this machine';
  throw refused(attempt(wish), { status: 409, body: { message } });
}

const attempt = ({ name }: NetworkWish): string =>
  name === undefined ? 'make a network ahead' : `make a network for "${name}"`;

/** Undefined where the subnet is used. A name that is taken by a leftover of the same workload is freed. */
async function makeIn(
  { client, randomId, signal, asked }: NetworkMaker,
  wish: NetworkWish,
  subnet: Range,
): Promise<MadeNetwork | undefined> {
  const { podman } = await client.about();
  let name = networkName(wish);
  for (let left = MAX_NAMES_TRIED; ; left -= 1) {
    const body = networkBody({ wish, name, subnet, podman });
    const answer = await client.call({ method: 'POST', path: '/networks/create', body, signal, sent: asked });
    if (answer.status === 201) {
      const id = readAnswer(createdShape, answer.body).Id;
      // What cannot be removed now goes with the workload.
      await removeLeftovers(client, wish, id).catch(() => {});
      return { id, name, subnet };
    }
    const message = engineMessage(answer.body);
    const taken = answer.status === 409 || /already exists/i.test(message);
    if (!taken && /overlap|already used/i.test(message)) return undefined;
    if (!taken || left === 1)
      throw refused(attempt(wish), answer, wish.kind === 'internal' ? NO_MACVLAN : undefined);
    if (!(await removeLeftovers(client, wish))) name = `${name}-${randomId().slice(-8)}`;
  }
}

const createdShape = members({ Id: text });
const NO_MACVLAN =
  'isolation needs macvlan in the kernel of the engine (modprobe macvlan); --isolate-network=false does without';

/** What networks that were made ahead of a workload are called by. */
export const SPARE_PREFIX = 'skep-spare-';

/** For people: what leads to a network is its id, and labels. */
function networkName({ name: workload, ahead, kind }: NetworkWish): string {
  if (ahead) return ahead.called;
  return kind === 'internal' ? `skep-${workload}-internal` : `skep-${workload}`;
}

interface NetworkBody {
  readonly wish: NetworkWish;
  readonly name: string;
  readonly subnet: Range;
  readonly podman: boolean;
}

/**
 * The body of `POST /networks/create`. Containers on it cannot speak with each other, but for the two of an internal one.
 * On a bridge, with an address or without, the machine hears what a container sends to any address of the machine
 * (SO_DONTROUTE, a broadcast). So an internal network is a macvlan: its two speak with each other, and what they send to
 * anybody else goes to the ports of the bridge below, which are those of the gateway alone, and never to the machine.
 */
function networkBody({ wish, name, subnet, podman }: NetworkBody): object {
  const isMacvlan = wish.kind === 'internal';
  const options = isMacvlan
    ? { parent: bridgeOf(wish.outward) }
    : { 'com.docker.network.bridge.enable_icc': 'false' };
  return {
    Name: name,
    Driver: isMacvlan ? 'macvlan' : 'bridge',
    CheckDuplicate: true,
    EnableIPv6: false,
    Internal: wish.kind === 'internal',
    IPAM: { Driver: 'default', Config: [{ Subnet: rangeText(subnet) }] },
    // Podman refuses what it does not know, separates networks by an option of its own, and has no internal ones of ours.
    ...(podman ? {} : { Options: options }),
    Labels: {
      [MANAGED_LABEL]: 'true',
      ...(wish.name === undefined ? {} : { [NAME_LABEL]: wish.name }),
      [OWNER_LABEL]: wish.owner,
      [NETWORK_LABEL]: wish.kind,
      ...(wish.ahead?.maker ? { [MAKER_LABEL]: wish.ahead.maker } : {}),
    },
  };
}

/** As engines name the device of a bridge network that nobody named. */
export const bridgeOf = (id: string): string => `br-${id.slice(0, 12)}`;

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

/** Removes the networks of a workload that no container uses any more, those of `owner` alone where that is said. Idempotent. */
export async function removeNetworks(client: EngineClient, workload: string, owner?: string): Promise<void> {
  const wanted = (await networksOf(client, workload)).filter(
    ({ labels }) => owner === undefined || labels[OWNER_LABEL] === owner,
  );
  await Promise.all(wanted.map(({ id }) => removeNetwork(client, id)));
}

/** Idempotent; one to which something is connected stays. */
export async function removeNetwork(client: EngineClient, id: string): Promise<void> {
  const request = { method: 'DELETE', path: `/networks/${id}` } as const;
  // 403 and 409: it is still used.
  await client.ask(`remove network "${id}"`, request, 403, 404, 409);
}

/**
 * Removes what is left of earlier attempts to make this network, but `made`. True where something was removed; what a
 * container refers to, running or not, stays. An engine goes on with what it was asked by a program that was killed, and
 * before version 25 a network of the same name may come of that while another is made.
 */
async function removeLeftovers(client: EngineClient, wish: NetworkWish, made?: string): Promise<boolean> {
  if (wish.name === undefined) return false;
  const ours = (await networksOf(client, wish.name)).filter(
    ({ id, labels }) =>
      id !== made && labels[OWNER_LABEL] === wish.owner && labels[NETWORK_LABEL] === wish.kind,
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
