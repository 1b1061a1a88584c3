import { randomUUID } from 'node:crypto';
import { open, readdir, rename, rm, rmdir } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import type { SkepError } from '../errors/skep-error.ts';
import { errnoOf, ifThere } from './errno.ts';
import { makeDirectory } from './make-directory.ts';
import { writeFailure } from './write-failure.ts';

export interface AtomicWriteOptions {
  /** Permission bits of the file; default 0600. */
  readonly mode?: number;
  /**
   * False does not wait for the disk: for what says nothing after a crash of the machine. `either` waits until there is
   * one whole content or the other after it: for where the old one then means the same. Default true.
   */
  readonly durable?: boolean | 'either';
  /** Asked when nothing is left to do but the replacement itself; false leaves `path` as it is. */
  readonly confirm?: () => Promise<boolean>;
}

/** What a write is called until it is whole. */
const UNFINISHED = /^\..+\.[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}\.tmp$/;

/**
 * Replaces `path` so that readers and a crash see the old content or the new, never a mix. Missing
 * directories are made with mode 0750; a symbolic link is replaced, not followed. On failure
 * (`file/write-failed`) nothing new is left.
 */
export async function atomicWrite(
  path: string,
  content: string | Uint8Array,
  { mode = 0o600, durable = true, confirm = async () => true }: AtomicWriteOptions = {},
): Promise<void> {
  const directory = dirname(path);
  const temporary = join(directory, `.${basename(path)}.${randomUUID()}.tmp`);
  try {
    await makeDirectory(directory, 0o750);
    await write(temporary, content, { mode, durable });
    if (!(await confirm())) return await rm(temporary, { force: true });
    await rename(temporary, path);
    if (durable === true) await syncDirectory(directory);
  } catch (cause) {
    // The write's own failure is what the caller must hear; a leftover .tmp file is never read.
    await rm(temporary, { force: true }).catch(() => {});
    throw failure('write', path, cause);
  }
}

/** Removes what writes that a process did not live to end left in a directory. For a moment when nobody writes there. */
export async function removeUnfinished(directory: string): Promise<void> {
  const names = (await ifThere(readdir(directory))) ?? [];
  for (const name of names) if (UNFINISHED.test(name)) await removeFile(join(directory, name));
}

/** Removes a file; a missing one is fine. */
export async function removeFile(path: string): Promise<void> {
  try {
    await rm(path, { force: true });
  } catch (cause) {
    throw failure('remove', path, cause);
  }
}

/** Removes a directory that has nothing in it; one that is not there, or in use, is fine. */
export async function removeEmpty(directory: string): Promise<void> {
  await ifThere(rmdir(directory), 'ENOTEMPTY', 'EEXIST');
}

function failure(what: 'write' | 'remove', path: string, cause: unknown): SkepError {
  return writeFailure(`cannot ${what} "${path}"`, path, cause);
}

async function write(
  path: string,
  content: string | Uint8Array,
  { mode, durable }: Required<Pick<AtomicWriteOptions, 'mode' | 'durable'>>,
): Promise<void> {
  await using file = await open(path, 'wx', mode);
  // The umask may have taken bits away; the mode is a promise in both directions.
  await file.chmod(mode);
  await file.writeFile(content);
  if (durable !== false) await file.sync();
}

/** Makes the rename itself durable. Windows cannot open directories. */
async function syncDirectory(path: string): Promise<void> {
  await using directory = await open(path, 'r').catch((error: unknown) => {
    if (errnoOf(error) === 'EISDIR' || errnoOf(error) === 'EPERM') return undefined;
    throw error;
  });
  await directory?.sync();
}
