import { createHash } from 'node:crypto';
import type { BuildRecipe, Scheme } from './build-recipe.ts';

/** Repository prefix of images that Skep builds; never pulled, never verified. */
const LOCAL_PREFIX = 'skeplocal/';

export interface TagInputs {
  readonly scheme: Scheme['name'];
  readonly name: string;
  readonly recipe: BuildRecipe;
  readonly buildId: string;
  /** Engine's id of the base image, so that a newer base makes a new image. */
  readonly baseImageId: string;
  /** What else makes another image: what the index has where no version is named, what the build is given. */
  readonly beside?: string;
}

/**
 * `skeplocal/<scheme>-<sanitised name>:<hash>`: the same inputs give the same tag, so an image is built once. The build
 * id is left out of the hash because it differs each time and reaches nothing but labels.
 */
export function imageTag(inputs: TagInputs): string {
  const hash = createHash('sha256').update(`${inputs.name}\0${inputs.baseImageId}\0${inputs.beside ?? ''}\0`);
  for (const [path, content] of Object.entries(inputs.recipe.files).toSorted(byPath)) {
    hash.update(`${path}\0${content.replaceAll(inputs.buildId, '')}\0`);
  }
  return `${LOCAL_PREFIX}${inputs.scheme}-${sanitise(inputs.name)}:${hash.digest('hex').slice(0, 16)}`;
}

/** True for a reference that `imageTag` made. */
export function isLocalImage(reference: string): boolean {
  return /^skeplocal\/(?:npx|uvx|go)-[a-z0-9-]+:[0-9a-f]{16}$/.test(reference);
}

/** Lower-case repository name part: runs of anything else than letters and digits become one dash. */
function sanitise(name: string): string {
  const plain = name.toLowerCase().replaceAll(/[^a-z0-9]+/g, '-');
  return (
    plain
      .replaceAll(/^-+|-+$/g, '')
      .slice(0, 100)
      .replace(/-+$/, '') || 'package'
  );
}

const byPath = ([left]: readonly [string, string], [right]: readonly [string, string]) =>
  left < right ? -1 : 1;
