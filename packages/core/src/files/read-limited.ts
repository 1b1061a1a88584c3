import { constants } from 'node:fs';
import { open, type FileHandle } from 'node:fs/promises';
import { SkepError } from '../errors/skep-error.ts';
import { jsonErrorPlace } from '../json/judge.ts';
import { parseJson } from '../json/parsed-json.ts';
import { errnoOf } from './errno.ts';

export interface ReadLimits {
  /** Bytes. */
  readonly maxBytes: number;
  /** What the file is, for messages, for example `permission profile`. */
  readonly what?: string;
}

/** Without blocking, so that a named pipe is refused instead of waited for. */
export const READ_FLAGS = constants.O_RDONLY | (constants.O_NONBLOCK ?? 0);

/**
 * Reads a whole regular file of at most `maxBytes`. Fails with `file/not-found`, `file/not-a-file`, `file/too-large` or
 * `file/unreadable`.
 */
export async function readBytes(path: string, limits: ReadLimits): Promise<Buffer> {
  const { maxBytes, what = 'file' } = limits;
  await using file = await open(path, READ_FLAGS).catch((cause: unknown) => {
    throw openFailure(path, what, cause);
  });
  const stat = await file.stat();
  if (!stat.isFile()) throw notAFile(path, what);
  return await readUpTo(file, path, { size: stat.size, maxBytes, what });
}

export type Found = Required<Pick<ReadLimits, 'maxBytes' | 'what'>>;

export const notAFile = (path: string, what: string): SkepError =>
  new SkepError('file/not-a-file', { message: `${what} "${path}" is not a regular file` });

export const tooLarge = (path: string, { maxBytes, what }: Found): SkepError =>
  new SkepError('file/too-large', {
    message: `${what} "${path}" is larger than ${maxBytes} bytes`,
    detail: { path, maxBytes },
  });

/** Made once: making it takes longer than a small file takes to decode. */
let utf8: { decode(bytes: Uint8Array): string } | undefined;

/** As `readBytes`, as UTF-8 without a byte order mark; invalid UTF-8 is `file/unreadable`. */
export async function readText(path: string, limits: ReadLimits): Promise<string> {
  return decodeText(await readBytes(path, limits), path, limits);
}

/** The text of a file's bytes; fails as `readText`. */
export function decodeText(bytes: Uint8Array, path: string, { what = 'file' }: ReadLimits): string {
  try {
    utf8 ??= new TextDecoder('utf-8', { fatal: true });
    return utf8.decode(bytes);
  } catch (cause) {
    throw new SkepError('file/unreadable', {
      message: `${what} "${path}" is not UTF-8 text`,
      hint: 'save the file as UTF-8',
      cause,
    });
  }
}

/** As `readText`, parsed as JSON; fails with `file/not-json` naming the place. */
export async function readJson(path: string, limits: ReadLimits): Promise<unknown> {
  return (await readJsonText(path, limits)).value;
}

/** What a JSON file holds, and its text, so that places in it can be named. */
export interface JsonText {
  readonly value: unknown;
  readonly text: string;
}

/** As `readJson`, with the text. */
export async function readJsonText(path: string, limits: ReadLimits): Promise<JsonText> {
  return parseText(await readText(path, limits), path, limits);
}

/** The value of a file's text; fails with `file/not-json` naming the place. */
export function parseText(text: string, path: string, { what = 'file' }: ReadLimits): JsonText {
  try {
    return { value: parseJson(text), text };
  } catch (cause) {
    throw new SkepError('file/not-json', {
      message: `${what} "${path}" is not valid JSON${whereItBreaks(text)}`,
      detail: { path },
      cause,
    });
  }
}

/** ` at line L, column C`, or that there is nothing. */
function whereItBreaks(text: string): string {
  const place = jsonErrorPlace(text);
  if (text.trim() === '') return ': it is empty';
  return place === undefined ? '' : ` at line ${place.line}, column ${place.column}`;
}

/**
 * Reads one byte more than allowed at most. `size` is a guess that makes one buffer do: the file may have grown since it
 * was taken, and procfs files say 0.
 */
async function readUpTo(
  file: FileHandle,
  path: string,
  { size, maxBytes, what }: Found & { readonly size: number },
): Promise<Buffer> {
  let bytes: Buffer = Buffer.allocUnsafeSlow(Math.min(size, maxBytes) + 1);
  let total = 0;
  for (;;) {
    const { bytesRead } = await file.read(bytes, total, bytes.length - total, null);
    if (bytesRead === 0) return bytes.subarray(0, total);
    total += bytesRead;
    if (total > maxBytes) throw tooLarge(path, { maxBytes, what });
    if (total === bytes.length) bytes = grown(bytes, maxBytes + 1);
  }
}

export function grown(bytes: Buffer, most: number): Buffer {
  const larger = Buffer.allocUnsafeSlow(Math.min(Math.max(2 * bytes.length, 65_536), most));
  bytes.copy(larger);
  return larger;
}

export function openFailure(path: string, what: string, cause: unknown): SkepError {
  const errno = errnoOf(cause);
  if (errno === 'ENOENT' || errno === 'ENOTDIR') {
    return new SkepError('file/not-found', { message: `${what} "${path}" does not exist`, cause });
  }
  return new SkepError('file/unreadable', {
    message: `cannot read ${what} "${path}": ${errno ?? 'unexpected failure'}`,
    cause,
  });
}
