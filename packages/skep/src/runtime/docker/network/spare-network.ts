import { anything, listOf, members, orEmpty, readAs, recordOf, text } from '@skep/core/settings/shape.ts';
import type { Spare, Spares } from '../../spares.ts';
import type { EngineClient } from '../client.ts';
import { containerPath } from '../containers.ts';
import { endpointText } from '../endpoint.ts';
import { MAKER_LABEL, MANAGED, NAME_LABEL, NETWORK_LABEL, OWNER_LABEL } from '../labels.ts';
import { readAnswer } from '../read-answer.ts';
import { SHARED_NETWORK } from './old-shared-network.ts';
import {
  isReferredTo,
  makeNetwork,
  removeNetwork,
  SPARE_PREFIX,
  type NetworkMaker,
} from './workload-networks.ts';

interface SpareMaker extends NetworkMaker {
  /** Asks the engine who it is, for `saidBefore`; absent in a command, which uses the network at once. */
  readonly describe?: (signal: AbortSignal) => Promise<unknown>;
}

/** An engine that has to think about a network for longer is asked who it is. */
const SEEN_MS = 1_000;

/**
 * Makes a network ahead of the next workload of `owner` (decision 0278): what an engine does for one takes a fifth of a
 * start. Not on Podman, which does it when a container starts. Fails as `makeNetwork` does.
 */
export async function makeSpare(maker: SpareMaker, spares: Spares, owner: string): Promise<void> {
  const { client } = maker;
  if ((await client.about()).podman) return;
  const called = `${SPARE_PREFIX}${maker.randomId().slice(-12)}`;
  const make = async (maybeLeft: boolean): Promise<Spare> => {
    const [made, left] = await Promise.allSettled([
      makeNetwork(maker, { owner, kind: 'outward', ahead: { called, maker: spares.maker } }),
      maybeLeft ? sparesOf(client, owner) : [],
    ]);
    if (made.status === 'rejected') throw made.reason;
    const { id, name } = made.value;
    const others = left.status === 'rejected' ? [] : left.value.filter((one) => one.id !== id);
    const cleaning = removeUnused(
      client,
      others.filter((one) => spares.isLeft(one.id, one.maker)),
    );
    // The one that was made is good all the same.
    await cleaning.catch(() => spares.lookAgain());
    if (left.status === 'rejected') spares.lookAgain();
    // After it was made, so that whoever has it is whoever said it; nobody waits for that.
    let said: unknown;
    const over = new AbortController();
    maker.describe?.(over.signal).then(
      (answer) => (said = answer),
      () => {},
    );
    return {
      id,
      name,
      get said() {
        return said;
      },
      remove() {
        over.abort();
        return removeNetwork(client, id);
      },
    };
  };
  await spares.make(endpointText(client.endpoint), make, called);
}

/**
 * What the engine said of itself behind the network that is ready; undefined where that does not show within a second that it
 * is the same one still. One that was started anew, or listens at the address of another, has the network only if it keeps its
 * networks where that one did (decision 0469).
 */
export async function saidBefore(
  client: EngineClient,
  spares: Spares,
  signal: AbortSignal,
): Promise<unknown> {
  const spare = await spares.peek(endpointText(client.endpoint));
  if (spare?.said === undefined) return undefined;
  const soon = AbortSignal.any([signal, AbortSignal.timeout(SEEN_MS)]);
  const seen = await client.call({ path: `/networks/${spare.id}`, signal: soon }).catch(() => undefined);
  return seen?.status === 200 ? spare.said : undefined;
}

const networkShape = members({ Containers: orEmpty(recordOf(anything), {}) });

/** A network that is its caller's until that has `arrived`. */
export interface TakenSpare {
  /** What it will be called, where it is still being made. */
  readonly coming: string | undefined;
  /** Undefined where it cannot be used. */
  readonly spare: Promise<Spare | undefined>;
}

/** The network that this process has made ahead, or is making. */
export function takeSpare(client: EngineClient, spares: Spares): TakenSpare {
  const key = endpointText(client.endpoint);
  const coming = spares.nameOfComing(key);
  const taken = spares.take(key);
  if (coming !== undefined) return { coming, spare: taken };
  return { coming, spare: taken.then((spare) => spare && usable(spare, client, spares)) };
}

async function usable(spare: Spare, client: EngineClient, spares: Spares): Promise<Spare | undefined> {
  let isUsable = false;
  try {
    const { status, body } = await client.call({ path: `/networks/${spare.id}` });
    const connected = status === 200 ? readAs(networkShape, body)?.Containers : undefined;
    isUsable = connected !== undefined && Object.keys(connected).length === 0;
    // Somebody has removed it, or connected something with it.
    if (!isUsable) await spare.remove();
  } finally {
    if (!isUsable) spares.arrived(spare.id, false);
  }
  return isUsable ? spare : undefined;
}

const containerShape = members({
  Config: members({ Labels: orEmpty(recordOf(text), {}) }),
  HostConfig: members({ NetworkMode: text }),
  NetworkSettings: members({ Networks: orEmpty(recordOf(anything), {}) }),
});

/** Which networks that do not name it a container was put on: the one that all shared, or the id of a spare one. */
export async function unnamedNetworks(
  client: EngineClient,
  container: string,
): Promise<{ readonly shared: boolean; readonly spare?: string }> {
  const seen = readAs(containerShape, (await client.call({ path: containerPath(container, '/json') })).body);
  if (seen === undefined) return { shared: false };
  const { Config, HostConfig, NetworkSettings } = seen;
  const isSpare = Config.Labels[NETWORK_LABEL]?.startsWith(SPARE_PREFIX) === true;
  return {
    shared: Object.hasOwn(NetworkSettings.Networks, SHARED_NETWORK),
    ...(isSpare ? { spare: HostConfig.NetworkMode } : {}),
  };
}

const networksShape = listOf(members({ Id: text, Labels: orEmpty(recordOf(text), {}) }));

/** Removes the networks of `owner` that were made ahead and that no container refers to. Idempotent. */
export async function removeSpares(client: EngineClient, owner: string): Promise<void> {
  await removeUnused(client, await sparesOf(client, owner));
}

interface Found {
  readonly id: string;
  /** See `Spares.maker`. */
  readonly maker: string;
}

/** The networks of `owner` that were made ahead, used or not. */
async function sparesOf(client: EngineClient, owner: string): Promise<readonly Found[]> {
  const filters = { label: [MANAGED, `${OWNER_LABEL}=${owner}`] };
  const { body } = await client.ask('list networks', { path: '/networks', filters });
  return readAnswer(networksShape, body)
    .filter(
      ({ Labels }) =>
        Labels[OWNER_LABEL] === owner &&
        Labels[NAME_LABEL] === undefined &&
        Labels[NETWORK_LABEL] !== undefined,
    )
    .map(({ Id, Labels }) => ({ id: Id, maker: Labels[MAKER_LABEL] ?? '' }));
}

async function removeUnused(client: EngineClient, found: readonly Found[]): Promise<void> {
  for (const { id } of found) if (!(await isReferredTo(client, id))) await removeNetwork(client, id);
}
