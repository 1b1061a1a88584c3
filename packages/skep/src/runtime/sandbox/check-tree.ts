import type { Dirent } from 'node:fs';
import { chmod, lstat, opendir, readlink } from 'node:fs/promises';
import path from 'node:path';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { errnoOf } from '@skep/core/files/errno.ts';
import { readJson } from '@skep/core/files/read-limited.ts';
import { z } from 'zod';
import { notFetched } from '../gateway/failure.ts';
import { notFromRegistry } from '../npm/failure.ts';

export interface FetchedTree {
  readonly tree: string;
  /** The package as it was asked for, for messages. */
  readonly specifier: string;
  /** What the addresses of everything that came from a registry begin with. */
  readonly registry: string;
}

/**
 * Refuses a tree that holds anything but packages of the registry and links within itself. npm made it where it could
 * reach no file of the user, so this is for the person: a package that would have been taken from elsewhere is named
 * instead of missing. It also keeps what reads the tree on the host within it, and makes it readable and unchangeable for
 * other users. Throws `runtime/prefetch-failed`.
 */
export async function checkTree(fetched: FetchedTree): Promise<void> {
  await checkOrigins(fetched);
  await checkFiles(fetched);
}

type CheckedTree = Pick<FetchedTree, 'tree' | 'specifier'>;

/** Known packages with all that they depend on have a tenth of this. */
const MAX_ENTRIES = 500_000;
/** Looked at beside each other. */
const AT_ONCE = 64;

/**
 * The same for a tree of any origin: files, directories and links within itself, no more than `maxEntries`, each with a name
 * that can be read. Throws `runtime/prefetch-failed`.
 */
export async function checkFiles(fetched: CheckedTree, maxEntries = MAX_ENTRIES): Promise<void> {
  await makeReadable(fetched.tree, true);
  const waiting = [fetched.tree];
  let left = maxEntries;
  try {
    for (let directory = waiting.pop(); directory !== undefined; directory = waiting.pop()) {
      for await (const entries of entriesOf(directory)) {
        left -= entries.length;
        if (left < 0) throw notFetched(fetched.specifier, `it holds more than ${maxEntries} files`);
        await Promise.all(
          entries.map((entry) => checkEntry(path.join(entry.parentPath, entry.name), entry, fetched)),
        );
        waiting.push(
          ...entries.filter((one) => one.isDirectory()).map((one) => path.join(one.parentPath, one.name)),
        );
      }
    }
  } catch (error) {
    const errno = error instanceof SkepError ? undefined : errnoOf(error);
    if (errno === undefined) throw error;
    throw notFetched(fetched.specifier, `one of its files cannot be looked at (${errno})`);
  }
}

/** Some at a time: a directory can hold more than this process could. */
async function* entriesOf(directory: string): AsyncGenerator<readonly Dirent[]> {
  let some: Dirent[] = [];
  for await (const entry of await opendir(directory)) {
    if (some.push(entry) < AT_ONCE) continue;
    yield some;
    some = [];
  }
  yield some;
}

const lockShape = z.object({
  packages: z.record(
    z.string(),
    z.object({
      resolved: z.string().optional(),
      link: z.boolean().default(false),
      inBundle: z.boolean().default(false),
    }),
  ),
});

const MAX_LOCK_BYTES = 64 * 1024 * 1024;

/** npm writes down where it took each package from. */
async function checkOrigins({ tree, specifier, registry }: FetchedTree): Promise<void> {
  const file = path.join(tree, 'node_modules/.package-lock.json');
  const lock = lockShape.safeParse(
    await readJson(file, { maxBytes: MAX_LOCK_BYTES, what: 'list of packages' }),
  );
  if (!lock.success) throw notFetched(specifier, 'npm left no list of packages');
  // What a link leads to has an entry too, named by its path, so the links come first.
  const all = Object.entries(lock.data.packages).toSorted(([, a], [, b]) => Number(b.link) - Number(a.link));
  for (const [place, { resolved, link, inBundle }] of all) {
    const inRegistry = inBundle || resolved?.startsWith(registry) === true;
    if (inRegistry && !link) continue;
    const name = /.*node_modules\/(.+)$/.exec(place)?.[1] ?? place;
    throw notFromRegistry(specifier, `"${name}" (${resolved ?? 'of unknown origin'})`);
  }
}

async function checkEntry(file: string, entry: Dirent, fetched: CheckedTree): Promise<void> {
  if (entry.isSymbolicLink()) return checkLink(file, fetched);
  if (!entry.isFile() && !entry.isDirectory())
    throw notFetched(fetched.specifier, `"${entry.name}" is no file`);
  await makeReadable(file, entry.isDirectory());
}

/** A way up in the middle of a target could start from behind another link, so only plain targets can be judged. */
async function checkLink(file: string, { tree, specifier }: CheckedTree): Promise<void> {
  const target = await readlink(file);
  const inside = path.resolve(path.dirname(file), target).startsWith(`${tree}${path.sep}`);
  if (inside && path.normalize(target) === target) return;
  throw notFetched(specifier, `"${path.relative(tree, file)}" is a link out of it`);
}

/** For everyone to read and for nobody else to write; never with the rights of its owner. */
async function makeReadable(file: string, isDirectory: boolean): Promise<void> {
  const { mode } = await lstat(file);
  const needed = isDirectory ? 0o555 : 0o444;
  const wanted = ((mode & 0o755) | needed) & 0o7777;
  if ((mode & 0o7777) !== wanted) await chmod(file, wanted);
}
