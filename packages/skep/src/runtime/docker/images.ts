import { isLocalImage } from '../../protocol/image-tag.ts';
import type { EngineClient } from './client.ts';
import { refused } from './failure.ts';
import { filters } from './labels.ts';
import { listedIds, observedImage, type ObservedImage } from './observed.ts';

/** The image of that name on the engine, without asking any registry. */
export async function findImage(
  client: EngineClient,
  reference: string,
  signal?: AbortSignal,
): Promise<ObservedImage | undefined> {
  const path = `/images/${reference}/json`;
  const answer = await client.call({ method: 'GET', path, ...(signal ? { signal } : {}) });
  if (answer.status === 404) return undefined;
  if (answer.status !== 200) throw refused(`inspect image "${reference}"`, answer);
  return observedImage(answer.body);
}

/** Removes an image Skep built; one that a container uses, or that is not ours, stays. Idempotent. */
export async function discardImage(client: EngineClient, reference: string): Promise<void> {
  if (isLocalImage(reference)) await removeImage(client, reference);
}

/**
 * Removes the untagged layers that carry a label of a build and says how many there were; the engine removes their
 * untagged parents with them.
 */
export async function sweepLayers(client: EngineClient, label: string): Promise<number> {
  const listed = await client.call({
    method: 'GET',
    path: '/images/json',
    query: { filters: filters({ dangling: ['true'], label: [label] }) },
  });
  if (listed.status !== 200) throw refused('list images', listed);
  const ids = listedIds(listed.body);
  for (const id of ids) await removeImage(client, id);
  return ids.length;
}

/** Removes an image by name or id; one that is used stays. Idempotent. */
export async function removeImage(client: EngineClient, reference: string): Promise<void> {
  const answer = await client.call({ method: 'DELETE', path: `/images/${reference}` });
  const gone = answer.status === 200 || answer.status === 404;
  const inUse = answer.status === 409;
  if (!gone && !inUse) throw refused(`remove image "${reference}"`, answer);
}
