import { isLocalImage } from '../../protocol/image-tag.ts';
import type { EngineClient } from './client.ts';
import { listedIds, observedImage, type ObservedImage } from './observed.ts';

/** The image of that name on the engine, without asking any registry. */
export async function findImage(
  client: EngineClient,
  reference: string,
  signal?: AbortSignal,
): Promise<ObservedImage | undefined> {
  const request = { path: `/images/${reference}/json`, signal };
  const { status, body } = await client.ask(`inspect image "${reference}"`, request, 404);
  return status === 404 ? undefined : observedImage(body);
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
  const filters = { dangling: ['true'], label: [label] };
  const ids = listedIds((await client.ask('list images', { path: '/images/json', filters })).body);
  for (const id of ids) await removeImage(client, id);
  return ids.length;
}

/** Removes an image by name or id; one that is used stays. Idempotent. */
export async function removeImage(client: EngineClient, reference: string): Promise<void> {
  const path = `/images/${reference}`;
  await client.ask(`remove image "${reference}"`, { method: 'DELETE', path }, 404, 409);
}
