import { execFile } from 'node:child_process';
import { lchownSync } from 'node:fs';
import { chmod, lstat, mkdir, readdir, rmdir, unlink } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { errnoOf, ifThere } from '@skep/core/files/errno.ts';
import { removeEmpty } from '@skep/core/files/atomic-write.ts';
import { writeFailure } from '@skep/core/files/write-failure.ts';
import type { ConfinedUser } from '../../permissions/confined-user-name.ts';
import { DATA_PATH, partOf } from '../../permissions/data-paths.ts';
import type { Mount } from '../../permissions/mounts.ts';
import { writtenVolumes } from '../../permissions/mounts.ts';
import type { RuntimeEnvironment } from '../environment.ts';
import type { WorkloadSpec } from '../runtime.ts';
import { settlingVolumes } from '../settling-volumes.ts';
import { CONFINED_HOME } from './confine.ts';
import { removeFiles, removeWhole } from './own-directories.ts';

const run = promisify(execFile);

const keptDirectory = ({ dataDir }: RuntimeEnvironment, name: string): string =>
  path.join(dataDir, 'kept', name);

const sharedDirectory = ({ dataDir }: RuntimeEnvironment): string => path.join(dataDir, 'volumes');

type DataSpec = Pick<WorkloadSpec, 'name' | 'data' | 'volumes'>;

/** The directory of each path that a workload keeps: below one of this user alone, so that no server replaces it. */
function dataDirectories(environment: RuntimeEnvironment, { name, data = [] }: DataSpec) {
  return data.map((target) => ({
    target,
    source: path.join(keptDirectory(environment, name), partOf(target)),
  }));
}

/** The directory of each volume that it shares, in the same way. */
function sharedDirectories(environment: RuntimeEnvironment, { volumes = [] }: DataSpec): readonly Mount[] {
  const shared = sharedDirectory(environment);
  return volumes.map(({ volume, target, readOnly }) => ({
    source: path.join(shared, volume),
    target,
    readOnly,
  }));
}

/** All of them. */
export function keptDirectories(environment: RuntimeEnvironment, spec: DataSpec): readonly string[] {
  return [...dataDirectories(environment, spec), ...sharedDirectories(environment, spec)].map(
    ({ source }) => source,
  );
}

/** Those in which it can write: what others wrote into a volume that it only reads is not its own. */
export function writtenDirectories(environment: RuntimeEnvironment, spec: DataSpec): readonly string[] {
  return keptDirectories(environment, { ...spec, volumes: writtenVolumes(spec.volumes) });
}

export interface DataOwner {
  readonly environment: RuntimeEnvironment;
  readonly spec: DataSpec;
  /** Directory of the host that is the server's home. */
  readonly home: string;
  /** Whom everything shall belong to; undefined when it belongs to whoever starts the workload anyway. */
  readonly user: ConfinedUser | undefined;
}

/**
 * What the server finds again even after the workload was removed: each path that it keeps, and `/data` in its home as
 * well, where programs look that read no XDG_DATA_HOME. Fails with `runtime/start-failed` when something else is in the
 * place of a directory.
 */
export async function dataMounts({ environment, spec, home, user }: DataOwner): Promise<readonly Mount[]> {
  const directories = dataDirectories(environment, spec);
  const mounts = [...(await sharedMounts({ environment, spec, home, user }))];
  if (directories.length === 0) return mounts;
  const own = (await lstat(home)).uid;
  const kept = keptDirectory(environment, spec.name);
  for (const directory of [path.dirname(kept), kept]) await ensureDirectory(directory, user ? 0 : own);
  for (const { source, target } of directories) {
    const { uid, gid, isNew } = await ensureDirectory(source);
    // Each server of a name is somebody else where its mounts are; changing them ends with the directory itself.
    if (user && (uid !== user.uid || gid !== user.gid)) {
      if (isNew) lchownSync(source, user.uid, user.gid);
      else await run('chown', ['-hRP', `${user.uid}:${user.gid}`, '--', source]);
    }
    mounts.push({ source, target, readOnly: false });
    if (target !== DATA_PATH) continue;
    await makeMountPoint(home, ['.local', 'share'], user);
    mounts.push({ source, target: path.posix.join(CONFINED_HOME, '.local/share'), readOnly: false });
  }
  return mounts;
}

/**
 * Servers that root has started may be several users, so whoever has it mounted may write there; nobody else gets through
 * the directory above.
 */
async function sharedMounts({ environment, spec, home, user }: DataOwner): Promise<readonly Mount[]> {
  const mounts = sharedDirectories(environment, spec);
  if (mounts.length === 0) return [];
  const { uid: ofHome } = await lstat(home);
  // From here on a removal sees by the description of this workload that it has them.
  await settlingVolumes(environment, true, async () => {
    await ensureDirectory(sharedDirectory(environment), user ? 0 : ofHome);
    for (const { source } of mounts) {
      const { uid, mode } = await ensureDirectory(source);
      // New, or made by a start that was killed before this.
      if (user && uid === 0 && (mode & 0o077) === 0) await chmod(source, 0o777);
    }
  });
  return mounts;
}

/** A directory that is there, or is made for this user alone; never a link, nor another user's where `owner` is given. */
async function ensureDirectory(directory: string, owner?: number) {
  let made;
  try {
    made = await mkdir(directory, { recursive: true, mode: 0o700 });
  } catch (cause) {
    if (errnoOf(cause) !== 'EEXIST') {
      throw writeFailure(`cannot make "${directory}", where the server keeps its data`, directory, cause);
    }
  }
  const found = await lstat(directory);
  const { uid, gid, mode } = found;
  if (found.isDirectory() && (owner === undefined || uid === owner))
    return { uid, gid, mode, isNew: made !== undefined };
  throw new SkepError('runtime/start-failed', {
    message: `"${directory}", where the server is to keep its data, is no directory of yours`,
    hint: 'move it away and start the workload again',
  });
}

/**
 * Makes a directory of the server's home ready to be mounted on. What the server has put in its way, a link perhaps, is
 * removed: whoever mounts would follow it.
 */
async function makeMountPoint(home: string, names: readonly string[], user: ConfinedUser | undefined) {
  let at = home;
  for (const name of names) {
    at = path.join(at, name);
    const found = await ifThere(lstat(at));
    if (found && !found.isDirectory()) await unlink(at);
    else if (found && (found.mode & 0o700) !== 0o700) await chmod(at, 0o700);
    if (found?.isDirectory() === true) continue;
    // No server runs that could put anything in the way; another start of the same name may be as far.
    await mkdir(at, { mode: 0o700 }).catch(unlessThere);
    if (user) lchownSync(at, user.uid, user.gid);
  }
}

function unlessThere(error: unknown): void {
  if (errnoOf(error) !== 'EEXIST') throw error;
}

/** True when anything lies in one of the directories, or a removal was cut short. */
export async function holdsData(
  environment: RuntimeEnvironment,
  name: string,
  volumes: readonly string[] = [],
): Promise<boolean> {
  const shared = sharedDirectory(environment);
  for (const volume of volumes) if (await ifThere(lstat(path.join(shared, volume)))) return true;
  if (volumes.length > 0 && (await partsIn(shared)).some(isCutShort)) return true;
  const kept = keptDirectory(environment, name);
  for (const part of await partsIn(kept)) {
    // One that its server has shut holds something as well.
    const names = await ifThere(readdir(path.join(kept, part)).catch(() => ['?']));
    if (names && names.length > 0) return true;
  }
  return false;
}

/** Removes directories in which nothing was ever kept, and those volumes in which nothing is. */
export async function removeEmptyData(
  environment: RuntimeEnvironment,
  name: string,
  volumes: readonly string[] = [],
): Promise<void> {
  const shared = sharedDirectory(environment);
  for (const volume of volumes) await rmdir(path.join(shared, volume)).catch(() => {});
  if (volumes.length > 0) await removeEmpty(shared);
  const kept = keptDirectory(environment, name);
  for (const part of await partsIn(kept)) {
    await rmdir(path.join(kept, part)).catch(() => {});
  }
  await removeEmpty(kept);
}

/** Removes them with all that is in them, following no link, and what an interrupted removal left. */
export async function removeData(
  environment: RuntimeEnvironment,
  name: string,
  volumes: readonly string[] = [],
): Promise<void> {
  const shared = sharedDirectory(environment);
  for (const volume of volumes) await removeWhole(shared, volume, environment);
  // One process at a time removes volumes.
  for (const one of volumes.length > 0 ? await partsIn(shared) : [])
    if (isCutShort(one)) await removeFiles(path.join(shared, one));
  if (volumes.length > 0) await removeEmpty(shared);
  const kept = keptDirectory(environment, name);
  for (const part of await partsIn(kept)) {
    if (isCutShort(part)) await removeFiles(path.join(kept, part));
    else await removeWhole(kept, part, environment);
  }
}

/** Renamed by a removal, which did not come to the end. */
const isCutShort = (part: string): boolean => part.startsWith('.');

async function partsIn(kept: string): Promise<string[]> {
  const found = await ifThere(lstat(kept));
  if (found?.isDirectory() !== true) return [];
  const entries = await readdir(kept, { withFileTypes: true });
  return entries.filter((entry) => entry.isDirectory()).map(({ name }) => name);
}
