import { execFile } from 'node:child_process';
import { constants } from 'node:fs';
import { copyFile, lstat, mkdir, readdir, readFile, readlink, rename, rm, symlink, writeFile } from 'node:fs/promises'; // prettier-ignore
import path from 'node:path';
import { promisify } from 'node:util';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { errnoOf } from '@skep/core/files/errno.ts';
import { z } from 'zod';
import type { Mount } from '../runtime.ts';
import { CONFINED_HOME } from './confine.ts';
import type { ConfinedUser } from './confined-user.ts';
import { APP, packageHome } from './package-program.ts';
import type { WorkloadPlaces } from './places.ts';
import { removeFiles } from './remove-files.ts';

const run = promisify(execFile);

export interface StateOwner {
  readonly places: WorkloadPlaces;
  /** Id of the package tree, and where it is. */
  readonly reference: string;
  readonly tree: string;
  /** Whom everything shall belong to; undefined when it belongs to whoever starts the workload anyway. */
  readonly user: ConfinedUser | undefined;
}

/**
 * What a server may write and finds again at its next start: its home directory, and the folder of its own package,
 * where some write beside their code. That folder is a copy for this workload alone; what it depends on stays shared and
 * read-only. When the package has another version by now, the copy is of that version, with the files that the server
 * had added.
 *
 * Everything below is the server's to shape, links included, so nothing here follows a link of its making.
 */
export async function serverState(owner: StateOwner): Promise<readonly Mount[]> {
  const { places, reference, tree, user } = owner;
  const home = path.join(places.state, 'home');
  await mkdir(home, { recursive: true, mode: 0o755 });
  const inTree = await packageHome(tree);
  const source = path.join(tree, inTree);
  const copy = path.join(places.state, 'package');
  const made = await readMade(places);
  if (made?.reference !== reference) await renew({ source, copy, made, reference, places });
  const mounts = [
    { source: home, target: CONFINED_HOME, readOnly: false },
    { source: copy, target: path.posix.join(APP, inTree), readOnly: false },
  ];
  const own = path.join(source, 'node_modules');
  if (await isDirectory(own)) {
    await realDirectories(copy, ['node_modules']);
    mounts.push({ source: own, target: path.posix.join(APP, inTree, 'node_modules'), readOnly: true });
  }
  if (user !== undefined) await give(places.state, user);
  return mounts;
}

const madeShape = z.object({ reference: z.string(), files: z.array(z.string()) });
type Made = z.infer<typeof madeShape>;

/** What the copy was made from, and the files that came with the package. */
async function readMade(places: WorkloadPlaces): Promise<Made | undefined> {
  try {
    return madeShape.parse(JSON.parse(await readFile(places.shipped, 'utf8')));
  } catch (error) {
    if (errnoOf(error) === 'ENOENT' || error instanceof SyntaxError || error instanceof z.ZodError)
      return undefined;
    throw error;
  }
}

interface Renewal {
  readonly source: string;
  readonly copy: string;
  readonly made: Made | undefined;
  readonly reference: string;
  readonly places: WorkloadPlaces;
}

/** The old copy is there until the new one is complete: a start that is interrupted is begun anew by the next one. */
async function renew({ source, copy, made, reference, places }: Renewal): Promise<void> {
  const next = path.join(places.state, 'package.next');
  await removeFiles(next);
  const files = await copyFolder(source, next, '');
  if (made !== undefined) await carryAllOver(copy, next, new Set(made.files));
  await removeFiles(copy);
  await rename(next, copy);
  await writeFile(places.shipped, JSON.stringify({ reference, files }), { mode: 0o600 });
}

/** Answers with the relative paths of what it copied. What the package depends on is left out. */
async function copyFolder(source: string, target: string, below: string): Promise<string[]> {
  await mkdir(target, { mode: 0o755 });
  const entries = await readdir(source, { withFileTypes: true });
  const copied = await Promise.all(
    entries.map(async (entry) => {
      const relative = path.join(below, entry.name);
      const [from, to] = [path.join(source, entry.name), path.join(target, entry.name)];
      if (relative === 'node_modules') return [];
      if (entry.isDirectory()) return copyFolder(from, to, relative);
      if (entry.isSymbolicLink()) await symlink(await readlink(from), to);
      else await copyFile(from, to, constants.COPYFILE_FICLONE);
      return [relative];
    }),
  );
  return copied.flat();
}

/** Throws `runtime/start-failed` for directories that are nested deeper than a path can be. */
async function carryAllOver(from: string, to: string, shipped: ReadonlySet<string>): Promise<void> {
  try {
    await carryOver(from, to, shipped);
  } catch (cause) {
    if (errnoOf(cause) !== 'ENAMETOOLONG') throw cause;
    throw new SkepError('runtime/start-failed', {
      message: `the server has nested directories too deep in "${from}" to take them to another version`,
      hint: 'remove those directories, or remove the workload and run it again',
      cause,
    });
  }
}

/** Moves what did not come with the package. Where the new version has something of its own, that stays. */
async function carryOver(from: string, to: string, shipped: ReadonlySet<string>, below = ''): Promise<void> {
  for (const entry of await readdir(from, { withFileTypes: true })) {
    const relative = path.join(below, entry.name);
    const target = path.join(to, entry.name);
    if (relative === 'node_modules' || shipped.has(relative)) continue;
    const there = await kindOf(target);
    if (!entry.isDirectory()) {
      if (there === undefined) await rename(path.join(from, entry.name), target);
      continue;
    }
    if (there === undefined) await mkdir(target);
    if (there === undefined || there === 'directory') {
      await carryOver(path.join(from, entry.name), target, shipped, relative);
    }
  }
}

/** Makes them, and replaces what the server has put in their place. */
async function realDirectories(base: string, names: readonly string[]): Promise<void> {
  let directory = base;
  for (const name of names.filter((one) => one !== '')) {
    directory = path.join(directory, name);
    const kind = await kindOf(directory);
    if (kind === 'directory') continue;
    if (kind !== undefined) await rm(directory);
    await mkdir(directory);
  }
}

async function kindOf(file: string): Promise<'directory' | 'file' | 'other' | undefined> {
  try {
    const found = await lstat(file);
    if (found.isDirectory()) return 'directory';
    return found.isFile() ? 'file' : 'other';
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return undefined;
    throw error;
  }
}

const isDirectory = async (file: string): Promise<boolean> => (await kindOf(file)) === 'directory';

/** By chown(1): directories may be nested deeper than a path can be. */
async function give(directory: string, { uid, gid }: ConfinedUser): Promise<void> {
  await run('chown', ['-hRP', `${uid}:${gid}`, '--', directory]);
}
