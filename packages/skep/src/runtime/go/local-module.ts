import { createHash, type Hash } from 'node:crypto';
import { constants } from 'node:fs';
import { lstat, mkdir, open, readdir, readlink, realpath, stat, symlink, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { errnoOf, ifThere } from '@skep/core/files/errno.ts';

/** A main package of a module of this machine. */
export interface LocalModule {
  /** Real path of the directory that has the go.mod. */
  readonly root: string;
  /** The package in it: `./cmd/server`, or `.`. */
  readonly target: string;
}

/**
 * The module that a directory belongs to: the nearest go.mod upwards decides, as for Go itself. Throws
 * `runtime/package-not-found` for a directory that is not there, `runtime/prefetch-failed` for one outside of any module.
 */
export async function findLocalModule(directory: string): Promise<LocalModule> {
  const found = await ifThere(realpath(directory));
  if (found === undefined) throw notThere(`source path "${directory}" does not exist`);
  if (!(await stat(found)).isDirectory()) throw notThere(`source path "${directory}" is no directory`);
  for (let root = found; ; root = path.dirname(root)) {
    const goMod = await ifThere(lstat(path.join(root, 'go.mod')));
    if (goMod?.isFile() === true) {
      const below = path.relative(root, found);
      return { root, target: below === '' ? '.' : `./${below}` };
    }
    if (root === path.dirname(root)) break;
  }
  throw new SkepError('runtime/prefetch-failed', {
    message: `"${directory}" belongs to no Go module: there is no go.mod in it or above it`,
    hint: 'make one with go mod init, or name the directory of a program in a module',
  });
}

const notThere = (message: string) =>
  new SkepError('runtime/package-not-found', {
    message,
    hint: 'give a path from the working directory, such as go://./server',
  });

/** History is no source, and large. Go embeds nothing of it either. */
const LEFT_OUT = new Set(['.git', '.hg', '.svn', '.bzr']);
const MAX_FILES = 100_000;
const MAX_BYTES = 1024 * 1024 * 1024;

interface Reading {
  readonly root: string;
  /** Where a copy is made; it exists. */
  readonly copy: string | undefined;
  readonly hash: Hash;
  readonly signal: AbortSignal;
  files: number;
  bytes: number;
}

/**
 * What stands for the version of a module of this machine: a hash over all its files but its history, so another one as
 * soon as anything of them changes. Copies them to `copy` on the way, a directory that exists and is empty. Links are
 * copied as they are, and none is followed. Throws `runtime/prefetch-failed` for a module that is too large or cannot be
 * read, `runtime/aborted`.
 */
export async function localVersion(
  { root }: Pick<LocalModule, 'root'>,
  signal: AbortSignal,
  copy?: string,
): Promise<string> {
  const reading: Reading = { root, copy, hash: createHash('sha256'), signal, files: 0, bytes: 0 };
  await readBelow('', reading);
  return `src-${reading.hash.digest('hex').slice(0, 16)}`;
}

async function readBelow(below: string, reading: Reading): Promise<void> {
  const { root, copy, hash, signal } = reading;
  const at = path.join(root, below);
  const entries = await readdir(at, { withFileTypes: true }).catch((cause: unknown) => unreadable(at, cause));
  for (const entry of entries.toSorted((one, other) => (one.name < other.name ? -1 : 1))) {
    if (signal.aborted) throw new SkepError('runtime/aborted', { cause: signal.reason });
    if (LEFT_OUT.has(entry.name)) continue;
    const name = path.join(below, entry.name);
    const to = copy === undefined ? undefined : path.join(copy, name);
    if (entry.isDirectory()) {
      hash.update(JSON.stringify(['directory', name]));
      if (to !== undefined) await mkdir(to, { mode: 0o755 });
      await readBelow(name, reading);
    } else if (entry.isSymbolicLink()) {
      const target = await readlink(path.join(root, name));
      hash.update(JSON.stringify(['link', name, target]));
      if (to !== undefined) await symlink(target, to);
    } else if (entry.isFile()) {
      const content = await readFile(path.join(root, name), reading);
      hash.update(JSON.stringify(['file', name, content.length])).update(content);
      if (to !== undefined) await writeFile(to, content, { mode: 0o644, flag: 'wx' });
    }
  }
}

const { O_NOFOLLOW, O_NONBLOCK, O_RDONLY } = constants;

async function readFile(file: string, reading: Reading): Promise<Buffer> {
  reading.files += 1;
  await using opened = await open(file, O_RDONLY | O_NOFOLLOW | O_NONBLOCK).catch((cause: unknown) =>
    unreadable(file, cause),
  );
  reading.bytes += (await opened.stat()).size;
  if (reading.files > MAX_FILES || reading.bytes > MAX_BYTES) {
    throw new SkepError('runtime/prefetch-failed', {
      message: `the module at "${reading.root}" is too large: more than 100,000 files or 1 GiB`,
      hint: 'give the server a module of its own, in a directory of its own',
    });
  }
  return await opened.readFile();
}

function unreadable(file: string, cause: unknown): never {
  const why = errnoOf(cause) ?? 'unexpected failure';
  throw new SkepError('runtime/prefetch-failed', { message: `"${file}" cannot be read: ${why}`, cause });
}
