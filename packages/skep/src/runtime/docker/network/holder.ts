import { SkepError } from '@skep/core/errors/skep-error.ts';
import {
  anything,
  bool,
  members,
  optional,
  orEmpty,
  readAs,
  recordOf,
  text,
} from '@skep/core/settings/shape.ts';
import { createHash } from 'node:crypto';
import type { Pack } from 'tar-stream';
import { BUILD_LABEL } from '../../../protocol/build-recipe.ts';
import { STUCK } from '../../stuck.ts';
import { buildIdOf } from '../build-id.ts';
import type { EngineClient } from '../client.ts';
import { containerIds, containerPath, removeContainer } from '../containers.ts';
import { refused, startFailure } from '../failure.ts';
import { importImage } from '../import-image.ts';
import { findImage } from '../images.ts';
import {
  AUXILIARY_LABEL,
  MAKER_LABEL,
  MANAGED,
  MANAGED_LABEL,
  NETWORK_LABEL,
  OWNER_LABEL,
} from '../labels.ts';
import { readAnswer } from '../read-answer.ts';
import { nameServersSince } from './name-servers.ts';
import { goneNetwork, replaceGoneNetwork } from './replace-gone-network.ts';
import { SPARE_PREFIX, type NetworkMaker } from './workload-networks.ts';
import { waitingProgram } from './waiting-program.ts';

/*
 * A holder is a container that does nothing but hold its network open, for the one container that joins it
 * (decision 0470).
 */

export interface HolderWish {
  /** Of the network that it is on. */
  readonly network: { readonly id: string; readonly name: string };
  readonly owner: string;
  /** Who made the network; see `Spares`. */
  readonly maker: string;
  /** Of the engine, as images name it. */
  readonly architecture: string;
  /** Where it is aborted nothing stays. */
  readonly signal: AbortSignal;
}

/** Nobody of this machine. */
const USER = '65534:65534';
/** It uses 16 KiB; what starts it, before that, some more. */
const MEMORY_BYTES = 32 * 1024 * 1024;
const MAX_PROCESSES = 32;
const PROGRAM = '/hold';
/** With a host, as other images of ours. */
const REPOSITORY = 'localhost/skeplocal/holder';

/** What a holder is called on a network of that name. */
export const holderName = (network: string): string => `skep-holder-${network.slice(SPARE_PREFIX.length)}`;

/**
 * Makes and starts one; its id, or undefined for an engine on processors that it is not written for. On failure nothing of
 * it stays but its image. Fails with `runtime/engine-refused`, and with the reason of its signal.
 */
export async function startHolder(
  { client, randomId }: Pick<NetworkMaker, 'client' | 'randomId'>,
  wish: HolderWish,
): Promise<string | undefined> {
  const { owner, architecture, signal, network } = wish;
  const program = waitingProgram(architecture);
  if (program === undefined) return undefined;
  const reference = `${REPOSITORY}:${createHash('sha256').update(program).digest('hex').slice(0, 16)}`;
  if (!(await findImage(client, reference))) {
    const content = async (body: Pack): Promise<void> => {
      body.entry({ name: PROGRAM.slice(1), mode: 0o555 }, program);
      body.finalize();
    };
    const labels = [MANAGED, `${OWNER_LABEL}=${owner}`, `${BUILD_LABEL}=${buildIdOf({ owner, randomId })}`];
    await importImage(client, { reference, labels, what: 'what holds networks', content });
  }
  signal.throwIfAborted();
  const name = holderName(network.name);
  const request = { method: 'POST', path: '/containers/create', query: { name } } as const;
  const made = await client.call({ ...request, body: holderBody(wish, reference) });
  if (made.status !== 201) throw refused(`create container "${name}"`, made);
  const { Id: id } = readAnswer(members({ Id: text }), made.body);
  try {
    signal.throwIfAborted();
    const path = containerPath(id, '/start');
    await client.ask(`start container "${name}"`, { method: 'POST', path });
    signal.throwIfAborted();
    return id;
  } catch (error) {
    await removeContainer(client, id, `remove container "${name}"`);
    throw error;
  }
}

function holderBody({ network, owner, maker }: HolderWish, image: string): object {
  return {
    Image: image,
    Entrypoint: [PROGRAM],
    User: USER,
    // The first process of a container hears of no other signal that it did not ask for.
    StopSignal: 'SIGKILL',
    Labels: {
      [MANAGED_LABEL]: 'true',
      [OWNER_LABEL]: owner,
      [AUXILIARY_LABEL]: 'true',
      [NETWORK_LABEL]: network.name,
      ...(maker === '' ? {} : { [MAKER_LABEL]: maker }),
    },
    HostConfig: {
      NetworkMode: network.id,
      IpcMode: 'none',
      ReadonlyRootfs: true,
      CapDrop: ['ALL'],
      SecurityOpt: ['no-new-privileges'],
      PidsLimit: MAX_PROCESSES,
      Memory: MEMORY_BYTES,
      MemorySwap: MEMORY_BYTES,
      // Skep starts it before its workload.
      RestartPolicy: { Name: 'no' },
      LogConfig: { Type: 'none' },
    },
    NetworkingConfig: { EndpointsConfig: { [network.id]: { NetworkID: network.id } } },
  };
}

/** Removes the holders of a network of that name, whatever they do. Idempotent. */
export async function removeHolders(client: EngineClient, network: string): Promise<void> {
  const label = [MANAGED, `${AUXILIARY_LABEL}=true`, `${NETWORK_LABEL}=${network}`];
  for (const id of await containerIds(client, { label }))
    await removeContainer(client, id, `remove container "${id}"`);
}

const containerShape = members({
  Config: members({ Labels: orEmpty(recordOf(text), {}) }),
  HostConfig: members({ NetworkMode: text }),
});

/** The name of the network made ahead that a workload has, by its labels; undefined for one that has another. */
export function spareOf({ [NETWORK_LABEL]: network }: Readonly<Record<string, string>>): string | undefined {
  return network?.startsWith(SPARE_PREFIX) === true ? network : undefined;
}

/** Id of the holder that a container has joined, there or not; undefined for a container that has joined none, and for none. */
export async function holderOf(client: EngineClient, container: string): Promise<string | undefined> {
  const request = { path: containerPath(container, '/json') };
  const seen = readAs(containerShape, (await client.ask(`inspect "${container}"`, request, 404)).body);
  if (seen === undefined || spareOf(seen.Config.Labels) === undefined) return undefined;
  return /^container:(.+)$/.exec(seen.HostConfig.NetworkMode)?.[1];
}

/** Idempotent. */
export async function stopHolder(client: EngineClient, id: string): Promise<void> {
  const request = { method: 'POST', path: containerPath(id, '/stop') } as const;
  await client.ask(`stop container "${id}"`, request, 304, 404);
}

const stateShape = members({
  State: members({ Running: bool, StartedAt: optional(text) }),
  NetworkSettings: orEmpty(members({ Networks: orEmpty(recordOf(anything), {}) }), { Networks: {} }),
});

/** Undefined where it is gone. */
async function stateOf(client: EngineClient, holder: string) {
  const request = { path: containerPath(holder, '/json') };
  const { status, body } = await client.ask(`inspect container "${holder}"`, request, 404);
  if (status === 404) return undefined;
  const { State, NetworkSettings } = readAnswer(stateShape, body);
  return {
    runs: State.Running,
    since: Date.parse(State.StartedAt ?? ''),
    isConnected: Object.keys(NetworkSettings.Networks).length > 0,
  };
}

/** When a holder was last started, in milliseconds since 1970; undefined where it does not run, or is gone. */
export async function heldSince(client: EngineClient, holder: string): Promise<number | undefined> {
  const state = await stateOf(client, holder);
  return state?.runs ? state.since : undefined;
}

/**
 * Before a workload is started that has joined a holder: has that run, since this machine last changed whom it asks for names, on
 * a new network where its own is gone. True where it was started here. Fails with `runtime/start-failed`; without any
 * holder, or any network of it, that is beyond repetition, because an engine knows it by id.
 */
export async function readyHolder(maker: NetworkMaker, workload: string, holder: string): Promise<boolean> {
  const { client } = maker;
  const state = await stateOf(client, holder);
  if (state === undefined) throw lost(workload, 'was removed');
  if (state.runs) {
    if (state.since >= nameServersSince(client)) return false;
    await stopHolder(client, holder);
  } else if (!state.isConnected) throw lost(workload, 'was taken off that');
  const begin = () => client.call({ method: 'POST', path: containerPath(holder, '/start') });
  let answer = await begin();
  const gone = goneNetwork(answer);
  if (gone !== undefined) {
    if (!(await replaceGoneNetwork(maker, { container: holder, workload }, gone)))
      throw lost(workload, 'was taken off that');
    answer = await begin();
  }
  if (answer.status === 404 && gone === undefined) throw lost(workload, 'was removed');
  if (answer.status >= 400) throw startFailure(workload, answer);
  return true;
}

function lost(workload: string, how: string): SkepError {
  return new SkepError('runtime/start-failed', {
    message: `workload "${workload}" could not be started: the container that held its network ${how}`,
    detail: STUCK,
  });
}
