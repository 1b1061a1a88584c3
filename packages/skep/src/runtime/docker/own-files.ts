import { z } from 'zod';
import type { EngineClient } from './client.ts';
import { refused } from './failure.ts';
import { findImage } from './images.ts';

const imageShape = z.object({ Image: z.string(), Config: z.object({ Image: z.string() }) });

/** True unless the engine has another image by now under the name that the container was made from. */
export async function isFromCurrentImage(client: EngineClient, container: string): Promise<boolean> {
  const answer = await client.call({
    method: 'GET',
    path: `/containers/${encodeURIComponent(container)}/json`,
  });
  if (answer.status !== 200) throw refused(`inspect "${container}"`, answer);
  const { Image, Config } = imageShape.parse(answer.body);
  const now = await findImage(client, Config.Image);
  return now === undefined || bare(now.id) === bare(Image);
}

/** Podman leaves the algorithm out. */
const bare = (id: string): string => id.replace(/^sha256:/, '');

const changesShape = z.array(z.object({ Path: z.string(), Kind: z.number() })).nullish();
/** `Kind` of a path that the image does not have. */
const ADDED = 1;
/** What engines put into every container themselves, and what is meant to be lost. */
const NOT_KEPT =
  /^\/(?:dev|proc|sys|run|tmp|etc\/(?:hosts|hostname|resolv\.conf|mtab))(?:\/|$)|^\/\.dockerenv$/;

/** True when the server in a container has added files to what came with its image. */
export async function hasOwnFiles(client: EngineClient, container: string): Promise<boolean> {
  const path = `/containers/${encodeURIComponent(container)}/changes`;
  const answer = await client.call({ method: 'GET', path });
  if (answer.status === 404) return false;
  if (answer.status !== 200) throw refused(`tell what changed in "${container}"`, answer);
  const changes = changesShape.parse(answer.body) ?? [];
  return changes.some(({ Path, Kind }) => Kind === ADDED && !NOT_KEPT.test(Path));
}
