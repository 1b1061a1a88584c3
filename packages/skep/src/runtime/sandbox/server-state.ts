import { execFile } from 'node:child_process';
import { constants, lchownSync, readdirSync, readlinkSync, symlinkSync } from 'node:fs';
import { copyFile, lstat, mkdir, readdir, readFile, rename, rm } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { atomicWrite, removeFile } from '@skep/core/files/atomic-write.ts';
import { errnoOf, ifThere } from '@skep/core/files/errno.ts';
import { parsedJson } from '@skep/core/json/parsed-json.ts';
import {
  listOf,
  members,
  optional,
  readAs,
  text,
  withDefault,
  type ShapeType,
} from '@skep/core/settings/shape.ts';
import type { Mount } from '../../permissions/mounts.ts';
import { CONFINED_HOME } from './confine.ts';
import type { ConfinedUser } from '../../permissions/confined-user-name.ts';
import { bootId } from './linux-process.ts';
import { APP, packageHome } from './package-trees.ts';
import type { WorkloadPlaces } from './places.ts';
import { removeFiles } from './own-directories.ts';
import { copyOf, copyPackage, isCopiedAhead } from './package-copy.ts';

const run = promisify(execFile);

export interface StateOwner {
  readonly places: WorkloadPlaces;
  /** Id of the package tree, and where it is. */
  readonly reference: string;
  readonly tree: string;
  /** Whom everything shall belong to; undefined when it belongs to whoever starts the workload anyway. */
  readonly user: ConfinedUser | undefined;
}

export interface ServerState {
  readonly mounts: readonly Mount[];
  /** Its home directory, on the host. */
  readonly home: string;
  /** Copies all that they are to hold and gives it to the server, of which nothing may run before. */
  readonly complete: () => Promise<void>;
}

/**
 * What a server may write and finds again at its next start: its home directory, and the folder of its own package,
 * where some write beside their code. That folder is a copy for this workload alone; what it depends on stays shared and
 * read-only. When the package has another version by now, the copy is of that version, with the files that the server
 * had added. The directories are there to be mounted before what belongs into them is copied.
 *
 * Everything below is the server's to shape, links included, so nothing here follows a link of its making.
 */
export async function serverState(owner: StateOwner): Promise<ServerState> {
  const { places, reference, tree, user } = owner;
  const home = path.join(places.state, 'home');
  const isNew = (await mkdir(home, { recursive: true, mode: 0o755 })) !== undefined;
  const inTree = await packageHome(tree);
  if (inTree === undefined) return homeOnly(owner, home, isNew);
  const source = path.join(tree, inTree);
  const copy = copyOf(places);
  const boot = await bootId();
  const made = await readMade(places);
  const isCopied = made === undefined && (await isCopiedAhead(places, tree));
  if (made === undefined) {
    if (!isCopied) await beginCopy(copy);
  } else if (made.reference !== reference) await renew(owner, made, source);
  else if (made.boot !== boot) {
    await restoreLost(made.files, source, copy);
    await writeMade(places, { ...made, boot }, { durable: true });
  }
  const mounts = [
    { source: home, target: CONFINED_HOME, readOnly: false },
    { source: copy, target: path.posix.join(APP, inTree), readOnly: false },
  ];
  const own = path.join(source, 'node_modules');
  if (await isDirectory(own)) {
    await makeDirectory(path.join(copy, 'node_modules'));
    mounts.push({ source: own, target: path.posix.join(APP, inTree, 'node_modules'), readOnly: true });
  }
  return {
    mounts,
    home,
    async complete() {
      if (made === undefined) {
        const owned = isNew ? user : undefined;
        const files = isCopied ? pathsBelow(copy, owned) : await copyFolder(source, copy, owned);
        // The server may change it once this is complete, and then it is no copy that was made ahead any more.
        await removeFile(places.copied);
        await writeMade(places, { reference, files, boot });
      }
      if (user !== undefined) await give(places.state, user, isNew);
    },
  };
}

function homeOnly({ places, user }: StateOwner, home: string, isNew: boolean): ServerState {
  return {
    mounts: [{ source: home, target: CONFINED_HOME, readOnly: false }],
    home,
    async complete() {
      if (user !== undefined) await give(places.state, user, isNew);
    },
  };
}

const madeShape = members({
  reference: text,
  files: listOf(text),
  /** Since when the copy is known to be whole; a machine that goes down may lose what was not on its disk yet. */
  boot: withDefault(text, ''),
  /** The copy of another version is complete, and takes the place of this one. */
  next: optional(members({ reference: text, files: listOf(text) })),
});
type Made = ShapeType<typeof madeShape>;

const nextOf = ({ state }: WorkloadPlaces): string => path.join(state, 'package.next');

/** What the copy was made from, and the files that came with the package; undefined where there is no whole copy. */
async function readMade(places: WorkloadPlaces): Promise<Made | undefined> {
  const said = await ifThere(readFile(places.shipped, 'utf8'));
  const made = readAs(madeShape, parsedJson(said ?? ''));
  if (made?.next !== undefined) return replaceCopy(places, made, made.next);
  if (await isDirectory(nextOf(places))) await removeFiles(nextOf(places));
  return (await isDirectory(copyOf(places))) ? made : undefined;
}

/** One that is not written down as made is no copy, or one that was interrupted. */
async function beginCopy(copy: string): Promise<void> {
  await removeFiles(copy);
  await mkdir(copy, { mode: 0o755 });
}

/** The old copy is there until the new one is complete: a start that is interrupted before is begun anew by the next one. */
async function renew({ places, reference }: StateOwner, made: Made, source: string): Promise<void> {
  await beginCopy(nextOf(places));
  const next = { reference, files: await copyFolder(source, nextOf(places)) };
  await writeMade(places, { ...made, next }, { durable: true });
  await replaceCopy(places, made, next);
}

/**
 * Puts the new copy in the place of the old one, with what the server had added. Neither is whole from the first file that
 * moves, so that every start first finishes what one before it began, whichever version it wants itself.
 */
async function replaceCopy(
  places: WorkloadPlaces,
  made: Made,
  { reference, files }: NonNullable<Made['next']>,
): Promise<Made> {
  const [copy, next] = [copyOf(places), nextOf(places)];
  if (await isDirectory(next)) {
    if (await isDirectory(copy)) await moveOver(places, made, files);
    await removeFiles(copy);
    await rename(next, copy);
  }
  const renewed = { reference, files, boot: await bootId() };
  await writeMade(places, renewed, { durable: true });
  return renewed;
}

/** Moves what the server has added to the new copy, and where that cannot be done back to the old one. */
async function moveOver(places: WorkloadPlaces, made: Made, files: readonly string[]): Promise<void> {
  const [copy, next] = [copyOf(places), nextOf(places)];
  try {
    await carryAllOver(copy, next, new Set(made.files));
  } catch (error) {
    await carryOver(next, copy, new Set(files));
    const { next: _, ...alone } = made;
    await writeMade(places, alone);
    throw error;
  }
}

/** Not waiting for the disk, it may be gone after a crash of the machine, and the copy is made anew. */
function writeMade(places: WorkloadPlaces, made: Made, { durable = false } = {}): Promise<void> {
  return atomicWrite(places.shipped, JSON.stringify(made), { durable });
}

/**
 * Puts back files of the package that are gone, or empty as after a power cut. Whatever else the server has made of them
 * stays, and so does what it has put where a directory of the package was.
 */
async function restoreLost(files: readonly string[], source: string, copy: string): Promise<void> {
  for (const file of files) {
    const [from, to] = [path.join(source, file), path.join(copy, file)];
    if (!(await leadsThere(copy, path.dirname(file))) || !(await isEmpty(to)) || (await isEmpty(from)))
      continue;
    await mkdir(path.dirname(to), { recursive: true, mode: 0o755 });
    await rm(to, { force: true });
    if ((await lstat(from)).isSymbolicLink()) symlinkSync(readlinkSync(from), to);
    else await copyFile(from, to, constants.COPYFILE_FICLONE);
  }
}

/** True when all on the way to a directory are directories, or are gone. */
async function leadsThere(copy: string, directory: string): Promise<boolean> {
  let at = copy;
  for (const name of directory.split(path.sep)) {
    at = path.join(at, name);
    const kind = await kindOf(at);
    if (kind !== 'directory') return kind === undefined;
  }
  return true;
}

async function isEmpty(file: string): Promise<boolean> {
  const found = await ifThere(lstat(file));
  return found === undefined || (found.isFile() && found.size === 0);
}

/** Copies into an empty directory, for `user` where whom it belongs to is not left to `give`. Answers as `pathsBelow`. */
async function copyFolder(source: string, target: string, user?: ConfinedUser): Promise<string[]> {
  await copyPackage(source, target);
  return pathsBelow(target, user);
}

/** The relative paths of everything but directories, each thing given to `user` on the way. */
function pathsBelow(folder: string, user: ConfinedUser | undefined): string[] {
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true });
  return entries.flatMap((entry) => {
    const full = path.join(entry.parentPath, entry.name);
    if (user !== undefined) lchownSync(full, user.uid, user.gid);
    return entry.isDirectory() ? [] : [path.relative(folder, full)];
  });
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

/** Replaces what the server has put in its place. */
async function makeDirectory(directory: string): Promise<void> {
  const kind = await kindOf(directory);
  if (kind === 'directory') return;
  if (kind !== undefined) await rm(directory);
  await mkdir(directory);
}

async function kindOf(file: string): Promise<'directory' | 'other' | undefined> {
  const found = await ifThere(lstat(file));
  return found && (found.isDirectory() ? 'directory' : 'other');
}

const isDirectory = async (file: string): Promise<boolean> => (await kindOf(file)) === 'directory';

/**
 * Gives the directories to the server, and all that it has left in them, unless they are new. By chown(1): directories
 * may be nested deeper than a path can be.
 */
async function give(state: string, { uid, gid }: ConfinedUser, areNew: boolean): Promise<void> {
  if (!areNew) return void (await run('chown', ['-hRP', `${uid}:${gid}`, '--', state]));
  for (const name of ['', 'home', 'package', 'package/node_modules']) {
    if (await isDirectory(path.join(state, name))) lchownSync(path.join(state, name), uid, gid);
  }
}
