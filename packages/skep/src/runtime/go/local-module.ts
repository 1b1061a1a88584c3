import { createHash, type Hash } from 'node:crypto';
import { constants } from 'node:fs';
import { lstat, mkdir, open, readdir, readlink, realpath, stat, symlink, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { errnoOf, ifThere } from '@skep/core/files/errno.ts';
import type { SourcePart } from '../../protocol/build-recipe.ts';

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

export interface Taking {
  /** True for what is to be as if it were not there. */
  readonly leavesOut?: (name: string, isDirectory: boolean) => boolean;
  /** Told of each part, directories before what is in them. */
  readonly take?: (part: SourcePart) => Promise<void> | void;
}

interface Reading {
  readonly root: string;
  readonly taking: Taking;
  readonly hash: Hash;
  readonly signal: AbortSignal;
  files: number;
  bytes: number;
}

/**
 * What stands for the version of a module of this machine: a hash over all its files but its history, so another one as
 * soon as anything of them changes. Hands them on on the way, links as they are, and none is followed. Throws
 * `runtime/prefetch-failed` for a module that is too large or cannot be read, `runtime/aborted`.
 */
export async function localVersion(
  { root }: Pick<LocalModule, 'root'>,
  signal: AbortSignal,
  taking: Taking = {},
): Promise<string> {
  const reading: Reading = { root, taking, hash: createHash('sha256'), signal, files: 0, bytes: 0 };
  await readBelow('', reading);
  return `src-${reading.hash.digest('hex').slice(0, 16)}`;
}

/** Copies what is taken to a directory that exists and is empty. */
export function copyTo(copy: string): Taking {
  return {
    async take(part) {
      const to = path.join(copy, part.name);
      if (part.kind === 'directory') await mkdir(to, { mode: 0o755 });
      else if (part.kind === 'link') await symlink(part.target, to);
      else await writeFile(to, part.content, { mode: 0o644, flag: 'wx' });
    },
  };
}

async function readBelow(below: string, reading: Reading): Promise<void> {
  const { root, taking, hash, signal } = reading;
  const at = path.join(root, below);
  const entries = await readdir(at, { withFileTypes: true }).catch((cause: unknown) => unreadable(at, cause));
  for (const entry of entries.toSorted((one, other) => (one.name < other.name ? -1 : 1))) {
    if (signal.aborted) throw new SkepError('runtime/aborted', { cause: signal.reason });
    const name = path.join(below, entry.name);
    if (LEFT_OUT.has(entry.name) || taking.leavesOut?.(name, entry.isDirectory()) === true) continue;
    if (entry.isDirectory()) {
      hash.update(JSON.stringify(['directory', name]));
      await taking.take?.({ kind: 'directory', name });
      await readBelow(name, reading);
    } else if (entry.isSymbolicLink()) {
      const target = await readlink(path.join(root, name));
      hash.update(JSON.stringify(['link', name, target]));
      await taking.take?.({ kind: 'link', name, target });
    } else if (entry.isFile()) {
      const content = await readFile(path.join(root, name), reading);
      hash.update(JSON.stringify(['file', name, content.length])).update(content);
      await taking.take?.({ kind: 'file', name, content });
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
