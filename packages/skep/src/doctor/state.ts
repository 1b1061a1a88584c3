import { constants } from 'node:fs';
import { access, chmod, lstat, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { errnoOf, ifThere } from '@skep/core/files/errno.ts';
import { removeUnusedLocks } from '@skep/core/files/lock.ts';
import type { Places } from '@skep/core/files/places.ts';
import { parsedJson } from '@skep/core/json/parsed-json.ts';
import { readText } from '@skep/core/files/read-limited.ts';
import { INDEX_FILE } from '../catalog/catalogue-index.ts';
import { loadRunConfig, savedNames } from '../run-config/file.ts';
import { ROOTLESS_FILE } from '../runtime/docker/files-of-root.ts';
import { PROOF_FILE } from '../runtime/sandbox/places.ts';
import { checkStatusFile, hostOf, isUnfinished, statusNames } from '../supervisor/state.ts';
import { ok, someOf, type Finding, type Inquiry } from './check.ts';

const OTHERS_MAY_WRITE = 0o022;
const OTHERS_MAY_DO_ANYTHING = 0o077;
const OWNER_NEEDS = 0o700;

/** Directories that Skep makes. */
const directoriesOf = (places: Places): readonly string[] => [
  places.configDir,
  places.stateDir,
  places.dataDir,
  places.cacheDir,
  places.runConfigsDir,
  places.previousDir,
  places.groupsDir,
  places.clientsDir,
  places.locksDir,
  places.secretLocksDir,
  places.statusesDir,
  places.serversDir,
  places.keptDir,
  places.logsDir,
  places.supervisorDir,
];

/** Whether they are this user's, who can use them and nobody else can change them. */
export async function lookAtDirectories({ context: { places, uid } }: Inquiry): Promise<Finding> {
  const wrong: { readonly path: string; readonly mode: number }[] = [];
  for (const path of directoriesOf(places)) {
    const found = await ifThere(lstat(path), 'EACCES', 'ENOTDIR');
    // A link to a directory elsewhere is the user's own choice.
    if (found === undefined || found.isSymbolicLink()) continue;
    if (!found.isDirectory()) return { verdict: 'broken', text: `"${path}" is not a directory` };
    if (uid !== undefined && found.uid !== uid)
      return { verdict: 'broken', text: `"${path}" belongs to another user`, remedy: OWNER_REMEDY };
    const mode = found.mode & 0o777;
    const better = (mode | OWNER_NEEDS) & ~OTHERS_MAY_WRITE;
    if (better !== mode) wrong.push({ path, mode: better });
    else if (!(await mayWrite(path))) return { verdict: 'broken', text: `"${path}" cannot be written to` };
  }
  if (wrong.length === 0) return ok(places.stateDir);
  return {
    verdict: 'broken',
    text: `wrong permissions: ${someOf(wrong.map(({ path }) => path))}`,
    fix: async () => {
      for (const { path, mode } of wrong) await chmod(path, mode);
      return 'set the permissions that Skep makes them with';
    },
  };
}

const OWNER_REMEDY = 'run skep as the user it belongs to, or give it back with chown';

async function mayWrite(path: string): Promise<boolean> {
  return access(path, constants.W_OK | constants.X_OK).then(
    () => true,
    () => false,
  );
}

/** Files with what was given to servers, which nobody else is to read. */
export async function lookAtFilePermissions({ context: { places } }: Inquiry): Promise<Finding> {
  const files = [places.secretsFile];
  for (const directory of [places.runConfigsDir, places.previousDir, places.statusesDir]) {
    const names = await readdir(directory).catch(() => []);
    files.push(...names.map((name) => join(directory, name)));
  }
  const open: string[] = [];
  for (const path of files) {
    const found = await ifThere(lstat(path), 'EACCES', 'ENOTDIR');
    if (found?.isFile() === true && (found.mode & OTHERS_MAY_DO_ANYTHING) !== 0) open.push(path);
  }
  if (open.length === 0) return ok('nobody else may read them');
  return {
    verdict: 'warning',
    text: `others may read ${someOf(open)}`,
    fix: async () => {
      for (const path of open) await chmod(path, 0o600);
      return 'shut others out';
    },
  };
}

/** Whether what is kept of each server can be read. */
export async function lookAtWorkloadFiles({ context: { places } }: Inquiry): Promise<Finding> {
  const names = await namesOf(places);
  const damaged: string[] = [];
  for (const name of names) {
    const isDamaged =
      (await fails(checkStatusFile(places, name))) || (await fails(loadRunConfig(places, name)));
    if (isDamaged) damaged.push(name);
  }
  if (damaged.length === 0) return ok(names.length === 1 ? '1 server' : `${names.length} servers`);
  const remedy = `remove and run them again: skep rm ${damaged.slice(0, 5).join(' ')}`;
  return { verdict: 'broken', text: `damaged: ${someOf(damaged)}`, remedy };
}

/** True for a file that is there and cannot be read. */
async function fails(reading: Promise<unknown>): Promise<boolean> {
  try {
    await reading;
    return false;
  } catch (error) {
    if (!(error instanceof SkepError)) throw error;
    return error.code !== 'file/not-found' && error.code !== 'workload/not-found';
  }
}

/** Of all servers of which anything is kept. Unlike `knownNames` it takes no locks. */
export async function namesOf(places: Places): Promise<readonly string[]> {
  return [...new Set([...(await statusNames(places)), ...(await savedNames(places))])].toSorted();
}

/** Servers that should run, and no living process hosts. */
export async function lookAtHosting({ context }: Inquiry): Promise<Finding> {
  const left: string[] = [];
  for (const name of await statusNames(context.places)) {
    // What cannot be read is told by another check.
    const status = await checkStatusFile(context.places, name).catch(() => undefined);
    if (status && isUnfinished(status.status) && !hostOf(status, context.isAlive)) left.push(name);
  }
  if (left.length === 0) return ok('whatever should run is hosted');
  return { verdict: 'warning', text: `nobody hosts ${someOf(left)}` };
}

/** Locks of servers that are gone stay as empty files until the last server goes. */
export async function lookAtLocks({ context: { places } }: Inquiry): Promise<Finding> {
  const names = (await ifThere(readdir(places.locksDir), 'EACCES', 'ENOTDIR')) ?? [];
  const known = new Set(await namesOf(places));
  const unused = names.filter((name) => {
    const of = /^run\.(.+)\.lock$/.exec(name)?.[1];
    return of !== undefined && !known.has(of);
  });
  if (unused.length === 0) return ok('none is left over');
  return {
    verdict: 'note',
    text: `${unused.length} of servers that are gone`,
    fix: async () => {
      await removeUnusedLocks(places.locksDir);
      return 'removed those that nobody holds';
    },
  };
}

/** What is only there to be faster, and made anew without a word when it is missing. */
export async function lookAtCaches({ context: { places } }: Inquiry): Promise<Finding> {
  const damaged: string[] = [];
  for (const [file, isWhole] of CACHES) {
    const path = join(places.cacheDir, file);
    try {
      const text = await readText(path, { maxBytes: 64 * 1024 * 1024 });
      if (!isWhole(text)) damaged.push(path);
    } catch (error) {
      if (!(error instanceof SkepError)) throw error;
      if (error.code !== 'file/not-found' && errnoOf(error.cause) !== 'EACCES') damaged.push(path);
    }
  }
  if (damaged.length === 0) return ok(places.cacheDir);
  return {
    verdict: 'warning',
    text: `damaged: ${someOf(damaged)}`,
    fix: async () => {
      for (const path of damaged) await rm(path, { force: true, recursive: true });
      return 'removed them; they are made anew';
    },
  };
}

const CACHES: readonly (readonly [string, (text: string) => boolean])[] = [
  [PROOF_FILE, (text) => parsedJson(text) !== undefined],
  [ROOTLESS_FILE, (text) => parsedJson(text) !== undefined],
  [INDEX_FILE, (text) => text.split('\n').length === 2 && text.split('\n').every((line) => parsedJson(line))],
];
