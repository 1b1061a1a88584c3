import { realpath } from 'node:fs/promises';
import { isAbsolute, relative, resolve } from 'node:path';
import { SkepError } from '@skep/core/errors/skep-error.ts';

/** Whether a path, as written, lies in one of the folders (or is one). Links are not followed; see `assertAllowed`. */
export function isAllowedPath(path: string, folders: readonly string[]): boolean {
  return folders.some((folder) => {
    const inside = relative(resolve(folder), resolve(path));
    return inside !== '..' && !inside.startsWith('../') && !isAbsolute(inside);
  });
}

/**
 * Refuses a file outside of the folders with `source/path-not-allowed`, also one that a link leads to. Without this,
 * whoever manages sources could publish every file that the server can read
 * (docs/behaviour/registry.md#reach-of-sources).
 */
export async function assertAllowed(path: string, folders: readonly string[]): Promise<void> {
  const real = await realpath(path).catch(() => path);
  const realFolders = await Promise.all(folders.map((folder) => realpath(folder).catch(() => folder)));
  if (isAllowedPath(path, folders) && isAllowedPath(real, realFolders)) return;
  throw new SkepError('source/path-not-allowed', {
    message: `"${path}" is in none of the folders from which sources made through the API may read`,
  });
}
