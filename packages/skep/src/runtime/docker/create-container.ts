import { members, readAs, text } from '@skep/core/settings/shape.ts';
import type { WorkloadSpec } from '../runtime.ts';
import type { EngineClient } from './client.ts';
import { containerBody, type Connection } from './container-body.ts';
import { createFailure } from './failure.ts';

const createdShape = members({ Id: text });

/**
 * Makes the container of a workload, which then waits to be started, and answers with its id. Fails with
 * `runtime/name-taken`, `runtime/image-not-found` or `runtime/engine-refused`.
 */
export async function createContainer(
  client: EngineClient,
  spec: WorkloadSpec,
  network: Connection | undefined,
): Promise<string> {
  const { podman } = await client.about();
  const body = containerBody(spec, { network, podman });
  const query = { name: spec.name };
  const answer = await client.call({ method: 'POST', path: '/containers/create', query, body });
  if (answer.status !== 201) throw createFailure(spec, answer);
  return readAs(createdShape, answer.body)?.Id ?? spec.name;
}
