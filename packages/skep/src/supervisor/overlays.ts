import { chmod, lstat, mkdir, readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { errnoOf } from '@skep/core/files/errno.ts';
import type { Places } from '@skep/core/files/places.ts';
import { findHidden, type HiddenPath } from '../permissions/hidden-paths.ts';
import type { Mount } from '../permissions/mounts.ts';
import { profileMounts } from '../permissions/profile.ts';
import type { RunConfig } from '../run-config/run-config.ts';

/**
 * What is mounted over the mounts of a workload, so that what ignore files hide at this moment is not seen: one empty file
 * and one empty directory for all workloads, both read-only. What appears later is hidden from the next start on. Fails
 * as `findHidden` does, and with `run/cannot-hide` where the empty ones are not empty.
 */
export async function overlaysOf(
  { permission_profile: profile, ignore_config: ignore }: RunConfig,
  places: Pick<Places, 'ignoreFile' | 'nothingDir'>,
): Promise<readonly Mount[]> {
  const hidden = await findHidden({
    file: places.ignoreFile,
    globally: ignore?.load_global ?? true,
    // Paths were made absolute when the configuration was built.
    mounts: profileMounts(profile, '/'),
  });
  if (hidden.length === 0) return [];
  const nothing = await makeNothing(places.nothingDir);
  return hidden.map((one) => ({
    source: nothing[one.shows] ?? one.source,
    target: one.target,
    readOnly: true,
  }));
}

async function makeNothing(directory: string): Promise<Partial<Record<HiddenPath['shows'], string>>> {
  const [file, folder] = [join(directory, 'file'), join(directory, 'directory')];
  await mkdir(folder, { recursive: true, mode: 0o700 });
  // Whom a server runs as may be somebody else, whatever the umask says.
  await writeFile(file, '', { flag: 'wx' }).catch((error: unknown) => {
    if (errnoOf(error) !== 'EEXIST') throw error;
  });
  await Promise.all([chmod(file, 0o444), chmod(folder, 0o555)]);
  const [found, inside, itself] = await Promise.all([lstat(file), readdir(folder), lstat(folder)]);
  if (!found.isFile() || found.size > 0 || !itself.isDirectory() || inside.length > 0) {
    throw new SkepError('run/cannot-hide', {
      message: `"${directory}" is to hold an empty file and an empty directory, and they are not empty`,
      hint: 'remove it and try again',
    });
  }
  return { 'empty-file': file, 'empty-directory': folder };
}
