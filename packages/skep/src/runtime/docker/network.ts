import { setTimeout as pause } from 'node:timers/promises';
import type { EngineClient } from './client.ts';
import { engineMessage, refused } from './failure.ts';
import { MANAGED, MANAGED_LABEL } from './labels.ts';
import { containerIds, containerPath } from './containers.ts';
import { networkNames, observedNetworks, type ObservedNetwork } from './observed.ts';

/** Network that non-isolated workloads share. */
export const EXTERNAL_NETWORK = 'skep-external';

/** Pauses before a network that others take away in between is looked for again: the engine lists it until it is gone. */
const PAUSES_MS = [200, 800];

/** The outcome of the last attempt: there are three, as long as the network that all share went away in between. */
export async function whileNetworkGoes<T>(
  attempt: () => Promise<T>,
  wentAway: (outcome: T) => boolean | Promise<boolean>,
): Promise<T> {
  for (const ms of PAUSES_MS) {
    const outcome = await attempt();
    if (!(await wentAway(outcome))) return outcome;
    await pause(ms);
  }
  return attempt();
}

/**
 * The id of `skep-external`, which is made when it is not there. Engines before version 25 check the name without a
 * lock, so callers at the same time can make several networks of one name, to which nothing can be attached by name any
 * more. Hence everything goes by id; who makes one keeps the oldest of them and removes the others that nobody uses.
 */
export async function ensureExternalNetwork(client: EngineClient): Promise<string> {
  const [known] = await namesakes(client);
  if (known) return known.id;
  const made = await client.call({
    method: 'POST',
    path: '/networks/create',
    body: {
      Name: EXTERNAL_NETWORK,
      Driver: 'bridge',
      CheckDuplicate: true,
      Labels: { [MANAGED_LABEL]: 'true' },
    },
  });
  const [oldest, ...others] = await namesakes(client);
  if (!oldest) throw refused(`create network "${EXTERNAL_NETWORK}"`, made);
  for (const one of others) await removeIfUnused(client, one);
  return oldest.id;
}

/**
 * Removes `skep-external` when no managed container, running or not, refers to it any more. One that is put to use
 * meanwhile stays: the engine refuses to remove a network with endpoints, and `reconnect` helps who came too late.
 */
export async function removeUnusedNetwork(client: EngineClient): Promise<void> {
  for (const one of await namesakes(client)) await removeIfUnused(client, one);
}

/**
 * Gives a container that is not running another shared network in place of the one it had, which is gone. Disconnecting
 * by name and by force is the one way that works for a network that does not exist.
 */
export async function reconnect(client: EngineClient, container: string): Promise<void> {
  const change = (network: string, action: 'connect' | 'disconnect', ...expected: readonly number[]) =>
    client.ask(
      `${action} "${container}"`,
      {
        method: 'POST',
        path: `/networks/${network}/${action}`,
        body: { Container: container, ...(action === 'disconnect' ? { Force: true } : {}) },
      },
      ...expected,
    );
  // Before it is taken off the old one: without a network it would start without one.
  await ensureExternalNetwork(client);
  await change(EXTERNAL_NETWORK, 'disconnect');
  const connected = await whileNetworkGoes(
    async () => change(await ensureExternalNetwork(client), 'connect', 404),
    ({ status }) => status === 404,
  );
  if (connected.status === 404) throw refused(`connect "${container}"`, connected);
}

/** True when a container was put on the shared network, which may be gone by now. */
export async function isOnSharedNetwork(client: EngineClient, container: string): Promise<boolean> {
  const answer = await client.call({ path: containerPath(container, '/json') });
  return answer.status === 200 && networkNames(answer.body).includes(EXTERNAL_NETWORK);
}

/** True for the engine's answer to a container whose network is not there any more. */
export function isNetworkGone(answer: { readonly status: number; readonly body: unknown }): boolean {
  return answer.status === 404 && /^network \S+ not found/.test(engineMessage(answer.body));
}

/** All networks of the shared name, the oldest first. */
async function namesakes(client: EngineClient): Promise<readonly ObservedNetwork[]> {
  const request = { path: '/networks', filters: { name: [EXTERNAL_NETWORK] } };
  const { body } = await client.ask('list networks', request);
  // The engine takes the name for a part of a name.
  return observedNetworks(body).filter((one) => one.name === EXTERNAL_NETWORK);
}

/** A network of that name without our label is somebody else's and stays. */
async function removeIfUnused(client: EngineClient, { id, labels }: ObservedNetwork): Promise<void> {
  if (labels[MANAGED_LABEL] !== 'true') return;
  if ((await containerIds(client, { label: [MANAGED], network: [id] })).length > 0) return;
  const request = { method: 'DELETE', path: `/networks/${id}` } as const;
  // 403 and 409: it is still used.
  await client.ask(`remove network "${EXTERNAL_NETWORK}"`, request, 403, 404, 409);
}
