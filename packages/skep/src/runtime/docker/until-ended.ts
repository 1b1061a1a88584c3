import { members, wholeNumber } from '@skep/core/settings/shape.ts';
import type { Observed } from '../runtime.ts';
import type { EngineClient } from './client.ts';
import { containerPath } from './containers.ts';
import { gatewayIds } from './gateway/gateway-container.ts';
import { isIsolated } from './gateway/isolation.ts';
import { heldSince, holderOf, spareOf } from './network/holder.ts';
import { readAnswer } from './read-answer.ts';
import { noSuchWorkload } from '../workload-name.ts';

const waitShape = members({ StatusCode: wholeNumber() });

/**
 * The exit status of a container, once it has ended. One that loses its gateway, or what holds its network, is ended: it would
 * go on without any way out, and whoever starts servers again gives it a new one. Fails with `runtime/no-such-workload` when it is gone, and
 * with `runtime/engine-unreachable`.
 */
export async function untilEnded(
  client: EngineClient,
  observed: Observed,
  given: AbortSignal,
): Promise<number> {
  const { name, state, exitCode } = observed;
  if (exitCode !== undefined) return exitCode;
  const enough = new AbortController();
  const signal = AbortSignal.any([given, enough.signal]);
  const condition = state === 'created' ? 'next-exit' : 'not-running';
  const ended = exitOf(client, name, condition, signal);
  if (state !== 'running') return ended;
  // Which of both fails first says the same.
  ended.catch(() => {});
  try {
    const needed = await neededBy(client, observed);
    if (needed === undefined) return await ended;
    const first = await Promise.race([ended, untilNoneRuns(client, needed, signal)]);
    if (first !== undefined) return first;
    const path = containerPath(name, '/stop');
    await client.ask(`stop "${name}"`, { method: 'POST', path, query: { t: '0' } }, 304, 404);
    return await ended;
  } finally {
    enough.abort();
  }
}

async function exitOf(
  client: EngineClient,
  name: string,
  condition: string,
  signal: AbortSignal,
): Promise<number> {
  const request = {
    method: 'POST',
    path: containerPath(name, '/wait'),
    query: { condition },
    signal,
  } as const;
  const { status, body } = await client.ask(`wait for "${name}"`, request, 404);
  if (status === 404) throw noSuchWorkload(name);
  return readAnswer(waitShape, body).StatusCode;
}

/** Ids of the containers that have the way out of a workload; undefined for one that has its own. */
async function neededBy(
  client: EngineClient,
  { name, labels, startedAt }: Observed,
): Promise<readonly string[] | undefined> {
  if (isIsolated(labels)) return gatewayIds(client, name);
  const holder = spareOf(labels) && (await holderOf(client, name));
  if (!holder) return undefined;
  const since = await heldSince(client, holder);
  // One that was started after its server holds another network than that is in.
  return since === undefined || (startedAt !== undefined && since > startedAt.getTime()) ? [] : [holder];
}

async function untilNoneRuns(
  client: EngineClient,
  containers: readonly string[],
  signal: AbortSignal,
): Promise<undefined> {
  for (const id of containers) {
    const request = { method: 'POST', path: containerPath(id, '/wait'), signal } as const;
    await client.ask(`wait for container "${id}"`, request, 404);
  }
}
