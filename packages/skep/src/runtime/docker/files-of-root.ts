import path from 'node:path';
import { atomicWrite } from '@skep/core/files/atomic-write.ts';
import { readJson } from '@skep/core/files/read-limited.ts';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { listOf, readAs, text } from '@skep/core/settings/shape.ts';
import type { RuntimeEnvironment } from '../environment.ts';
import type { WorkloadSpec } from '../runtime.ts';
import type { EngineClient } from './client.ts';
import { containerPath, imageOf, removeContainer } from './containers.ts';
import { holdsFiles } from './data-volumes.ts';
import { refused } from './failure.ts';

/** Ids of the images whose root keeps nothing, the last one first: an image never changes under its id (decision 0302). */
export const ROOTLESS_FILE = 'images-without-files-of-root.json';
const MAX_IMAGES = 200;
const MAX_BYTES = 64 * 1024;

/** What systems put into the home directory of root when they are installed. */
const SKELETON = /\/\.(?:bashrc|bash_logout|bash_profile|cshrc|tcshrc|profile)$/;

/**
 * Removes a container that was just made for another user than the root of its image, and fails with
 * `runtime/start-failed`, where that keeps programs or settings in the home directory of root: they would be missed late.
 * It takes an engine 40 ms to tell, so what an image was found without is not looked for again.
 */
export async function refuseFilesOfRoot(
  client: EngineClient,
  { name, mounts, overlays = [], data = [], volumes = [] }: WorkloadSpec,
  { cacheDir }: Pick<RuntimeEnvironment, 'cacheDir'>,
): Promise<void> {
  // What is mounted may lie in that directory too, and is no part of the image.
  const isImageAlone = mounts.length + overlays.length + data.length + volumes.length === 0;
  const file = path.join(cacheDir, ROOTLESS_FILE);
  const [image, known] = isImageAlone
    ? await Promise.all([imageOf(client, name).catch(() => undefined), readKnown(file)])
    : [undefined, []];
  if (image !== undefined && known.includes(image)) return;
  const request = { path: containerPath(name, '/archive'), query: { path: '/root/.' } };
  const tar = await client.stream(request, (answer) => refused('read /root', answer)).catch(() => undefined);
  if (tar === undefined) return;
  if (await holdsFiles(tar, SKELETON)) {
    await removeContainer(client, name, `remove "${name}"`);
    throw new SkepError('runtime/start-failed', {
      message: `permission denied: the image of "${name}" keeps files in /root, which are for root alone`,
    });
  }
  if (image !== undefined) await keepKnown(file, [image, ...known].slice(0, MAX_IMAGES));
}

const knownShape = listOf(text);

async function readKnown(file: string): Promise<readonly string[]> {
  const what = { maxBytes: MAX_BYTES, what: 'list of images' };
  const found: unknown = await readJson(file, what).catch(() => undefined);
  return readAs(knownShape, found) ?? [];
}

/** What cannot be kept is looked for again. */
async function keepKnown(file: string, images: readonly string[]): Promise<void> {
  await atomicWrite(file, JSON.stringify(images)).catch(() => {});
}
