import { chmod, lstat, readdir, readlink } from 'node:fs/promises';
import path from 'node:path';
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

/** The same for a tree of any origin: files, directories and links within itself. Throws `runtime/prefetch-failed`. */
export async function checkFiles(fetched: CheckedTree): Promise<void> {
  await makeReadable(fetched.tree, true);
  await checkBelow(fetched.tree, fetched);
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

async function checkBelow(directory: string, fetched: CheckedTree): Promise<void> {
  const entries = await readdir(directory, { withFileTypes: true });
  await Promise.all(
    entries.map(async (entry) => {
      const file = path.join(directory, entry.name);
      if (entry.isSymbolicLink()) return checkLink(file, fetched);
      if (!entry.isFile() && !entry.isDirectory())
        throw notFetched(fetched.specifier, `"${entry.name}" is no file`);
      await makeReadable(file, entry.isDirectory());
      if (entry.isDirectory()) await checkBelow(file, fetched);
    }),
  );
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
