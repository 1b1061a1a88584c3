import { members, optional, orEmpty, readAs, recordOf, text } from '@skep/core/settings/shape.ts';
import type { Spare, Spares } from '../../spares.ts';
import type { EngineClient } from '../client.ts';
import type { Connection } from '../container-body.ts';
import { removeContainer } from '../containers.ts';
import { endpointText } from '../endpoint.ts';
import { architectureOf, sharesNetworks } from '../engine-info.ts';
import { holderName, startHolder, type HolderWish } from './holder.ts';
import { removeUnused, sparesOf } from './left-networks.ts';
import { nameServersSince } from './name-servers.ts';
import { makeNetwork, removeNetwork, SPARE_PREFIX, type NetworkMaker } from './workload-networks.ts';

interface SpareMaker extends NetworkMaker {
  /** Asks the engine who it is, for `saidBefore`; absent in a command, which uses the network at once. */
  readonly describe?: (signal: AbortSignal) => Promise<unknown>;
  /** The next one is likely to join a holder. */
  readonly holds?: boolean;
  /** Told why there is no holder. */
  readonly failed?: ((error: unknown) => void) | undefined;
}

/** An engine that has to think about a network for longer is asked who it is. */
const SEEN_MS = 1_000;

/**
 * Makes a network ahead of the next workload of `owner` (decision 0278), and then a holder on it (decision 0470): what an
 * engine does for one takes half of a start. Not on Podman, which does it when a container starts. Fails as `makeNetwork`
 * does; for the holder nobody waits.
 */
export async function makeSpare(maker: SpareMaker, spares: Spares, owner: string): Promise<void> {
  const { client } = maker;
  if ((await client.about()).podman) return;
  const called = `${SPARE_PREFIX}${maker.randomId().slice(-12)}`;
  const make = async (): Promise<Spare> => {
    const { id, name } = await makeNetwork(maker, {
      owner,
      kind: 'outward',
      ahead: { called, maker: spares.maker },
    });
    const more = equip(maker, spares, { network: { id, name }, owner, maker: spares.maker });
    return {
      id,
      name,
      get said() {
        return more.said();
      },
      get holder() {
        return more.holder();
      },
      dropHolder: more.drop,
      async remove() {
        await more.drop();
        await removeNetwork(client, id);
      },
    };
  };
  const key = endpointText(client.endpoint);
  await spares.make(key, make, called);
  if (!spares.mayBeLeft(key)) return;
  try {
    const left = (await sparesOf(client, owner)).filter(({ id = '', maker: by }) => spares.isLeft(id, by));
    await removeUnused(client, left);
  } catch {
    // The one that was made is good all the same.
    spares.lookAgain();
  }
}

interface Equipment {
  readonly said: () => unknown;
  /** Undefined also where it has name servers that this machine does not ask any more. */
  readonly holder: () => string | undefined;
  /** Gives the holder up, there or still being made. Idempotent. */
  readonly drop: () => Promise<void>;
}

/** What comes to a network once it was made. */
function equip(
  maker: SpareMaker,
  spares: Spares,
  wish: Omit<HolderWish, 'architecture' | 'signal'>,
): Equipment {
  const over = new AbortController();
  const { signal } = over;
  let said: unknown;
  let holder: string | undefined;
  let since = 0;
  let holding: Promise<void> | undefined;
  const hold = async (architecture: string): Promise<void> => {
    since = Date.now();
    holder = await startHolder(maker, { ...wish, architecture, signal });
  };
  const begin = async (): Promise<void> => {
    // After the network was made, so that whoever has it is whoever said it.
    said = await maker.describe?.(signal);
    const architecture = said === undefined ? undefined : architectureOf(said);
    if (maker.holds !== true || architecture === undefined || !sharesNetworks(said) || signal.aborted) return;
    holding = hold(architecture);
    await holding;
  };
  begin().catch((error: unknown) => {
    if (holding !== undefined) spares.lookAgain();
    if (!signal.aborted) maker.failed?.(error);
  });
  return {
    said: () => said,
    holder: () => (since >= nameServersSince(maker.client) ? holder : undefined),
    async drop() {
      over.abort();
      await holding?.catch(() => {});
      const id = holder;
      holder = undefined;
      if (id !== undefined) await removeContainer(maker.client, id, `remove container "${id}"`);
    },
  };
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

const networkShape = members({ Containers: orEmpty(recordOf(members({ Name: optional(text) })), {}) });

/** A network that is its caller's until that has `arrived`. */
export interface TakenSpare {
  /** What it will be called, where it is still being made. */
  readonly coming: string | undefined;
  /** Undefined where it cannot be used. */
  readonly spare: Promise<Connection | undefined>;
}

/** The network that this process has made ahead, or is making; `joins` where its holder is wanted, which else is given up. */
export function takeSpare(client: EngineClient, spares: Spares, joins: boolean): TakenSpare {
  const key = endpointText(client.endpoint);
  const coming = spares.nameOfComing(key);
  const spare = spares.take(key).then(async (one) => {
    if (one === undefined) return undefined;
    const { id, name } = one;
    if (coming !== undefined) return { id, name, dropped: drop(one, spares) };
    const { holder, isFree } = await lookAt(one, client, spares);
    if (!isFree) return undefined;
    return joins && holder !== undefined ? { id, name, holder } : { id, name, dropped: drop(one, spares) };
  });
  return { coming, spare };
}

/** Nobody waits for it. A holder that stays is on the workload's network, and goes with that. */
async function drop({ dropHolder }: Spare, spares: Spares): Promise<void> {
  await dropHolder?.().catch(() => spares.lookAgain());
}

interface Look {
  /** False where somebody has removed it, or connected something with it. */
  readonly isFree: boolean;
  /** The holder, where that is on it. */
  readonly holder: string | undefined;
}

/** What is not free is removed. Fails with `runtime/engine-unreachable`. */
async function lookAt(spare: Spare, client: EngineClient, spares: Spares): Promise<Look> {
  const { holder } = spare;
  let isFree = false;
  try {
    const { status, body } = await client.call({ path: `/networks/${spare.id}` });
    const connected = Object.entries((status === 200 && readAs(networkShape, body)?.Containers) || {});
    isFree = status === 200 && connected.every(([, { Name }]) => Name === holderName(spare.name));
    return { isFree, holder: connected.find(([id]) => id === holder)?.[0] };
  } finally {
    if (!isFree) {
      spares.arrived(spare.id, false);
      await spare.remove().catch(() => {});
    }
  }
}
