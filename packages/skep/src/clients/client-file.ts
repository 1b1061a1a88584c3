import { constants } from 'node:fs';
import { access, lstat, realpath, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { atomicWrite, removeFile } from '@skep/core/files/atomic-write.ts';
import { errnoOf, ifThere } from '@skep/core/files/errno.ts';
import { readBytes } from '@skep/core/files/read-limited.ts';

/** A client's configuration file as it was found. */
export interface ClientFile {
  /** As it is called. */
  readonly path: string;
  /** Where it lies: a link is followed, never replaced. */
  readonly target: string;
  /** With its byte order mark; undefined where there is no file. */
  readonly text: string | undefined;
  readonly mode: number;
  /** Changes when the file does. */
  readonly stamp: string;
}

/** Claude Code keeps its history in its file. */
const MAX_BYTES = 32 * 1024 * 1024;
const NEW_MODE = 0o600;
const NO_FILE = 'none';

/** Why a file is not touched: `client/file-left-alone`. */
export function leaveAlone(path: string, why: string, cause?: unknown): SkepError {
  return new SkepError('client/file-left-alone', { message: `"${path}" is left alone: ${why}`, cause });
}

/**
 * Reads a client's file. Fails with `client/file-left-alone` for what is not a regular file of this user, may not be
 * written, is too large, or is not UTF-8.
 */
export async function readClientFile(path: string, uid: number | undefined): Promise<ClientFile> {
  const target = await targetOf(path);
  const found = target === undefined ? undefined : await ifThere(stat(target, { bigint: true }));
  if (target === undefined || !found) {
    return { path, target: path, text: undefined, mode: NEW_MODE, stamp: NO_FILE };
  }
  if (!found.isFile()) throw leaveAlone(path, 'it is not a regular file');
  if (uid !== undefined && Number(found.uid) !== uid) throw leaveAlone(path, 'it belongs to another user');
  try {
    await access(target, constants.W_OK);
    // The new file takes the place of the old one.
    await access(dirname(target), constants.W_OK);
  } catch (cause) {
    throw leaveAlone(path, 'it may not be written', cause);
  }
  const stamp = stampOf(found);
  return { path, target, text: await textOf(path, target), mode: Number(found.mode) & 0o777, stamp };
}

/**
 * Writes it anew, or removes it (undefined). False, without doing so, where somebody else has changed it since it was
 * read.
 */
export async function writeClientFile(file: ClientFile, text: string | undefined): Promise<boolean> {
  let isSame = false;
  // Asked last: clients write often, and bringing a file to the disk takes a while.
  const confirm = async (): Promise<boolean> => {
    const now = await ifThere(stat(file.target, { bigint: true }));
    isSame = (now ? stampOf(now) : NO_FILE) === file.stamp;
    return isSame;
  };
  if (text !== undefined) await atomicWrite(file.target, text, { mode: file.mode, confirm });
  else if (await confirm()) await removeFile(file.target);
  return isSame;
}

/** Undefined where nothing of that name is. */
async function targetOf(path: string): Promise<string | undefined> {
  try {
    const found = await ifThere(lstat(path), 'ENOTDIR');
    return found && (await realpath(path));
  } catch (error) {
    const why = errnoOf(error) === 'ENOENT' ? 'it is a link to nothing' : 'it cannot be looked at';
    throw leaveAlone(path, why, error);
  }
}

async function textOf(path: string, target: string): Promise<string> {
  try {
    const bytes = await readBytes(target, { maxBytes: MAX_BYTES });
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch (cause) {
    if (!(cause instanceof SkepError)) throw leaveAlone(path, 'it is not UTF-8 text', cause);
    throw leaveAlone(path, cause.code === 'file/too-large' ? 'it is too large' : 'it cannot be read', cause);
  }
}

function stampOf({ dev, ino, size, mtimeNs }: Record<'dev' | 'ino' | 'size' | 'mtimeNs', bigint>): string {
  return [dev, ino, size, mtimeNs].join(' ');
}
