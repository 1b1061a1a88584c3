import { closeSync, fstatSync, openSync, readSync } from 'node:fs';
import {
  decodeText,
  grown,
  notAFile,
  openFailure,
  parseText,
  READ_FLAGS,
  tooLarge,
  type Found,
  type JsonText,
  type ReadLimits,
} from './read-limited.ts';

/**
 * Small files of ours, read without Node's threads and without waiting: these cost more than the file where many are read.
 */

/** Holds most files whole. Its content is read before anything else can run, so one does for all. */
let scratch: Buffer | undefined;
const SCRATCH_BYTES = 16 * 1024;

/** As `readJsonText` of read-limited.ts, with the same failures. */
export function readJsonAtOnce(path: string, limits: ReadLimits): JsonText {
  return parseText(readTextAtOnce(path, limits), path, limits);
}

/** As `readText` of read-limited.ts, with the same failures. */
export function readTextAtOnce(path: string, limits: ReadLimits): string {
  const file = openAtOnce(path, limits);
  try {
    return decodeText(readWhole(file, path, limits), path, limits);
  } finally {
    closeSync(file);
  }
}

/** What is answered is overwritten by the next file. */
function readWhole(file: number, path: string, { maxBytes, what = 'file' }: ReadLimits): Buffer {
  const found: Found = { maxBytes, what };
  const stat = fstatSync(file);
  if (!stat.isFile()) throw notAFile(path, what);
  const { size } = stat;
  const most = maxBytes + 1;
  scratch ??= Buffer.allocUnsafeSlow(SCRATCH_BYTES);
  let bytes = size < scratch.length ? scratch : Buffer.allocUnsafeSlow(Math.min(size + 1, most));
  let total = 0;
  for (;;) {
    const read = readSync(file, bytes, total, Math.min(bytes.length, most) - total, null);
    total += read;
    if (total > maxBytes) throw tooLarge(path, found);
    // Files of procfs say that they have no bytes.
    if (read === 0 || total === size) return bytes.subarray(0, total);
    if (total === bytes.length) bytes = grown(bytes, most);
  }
}

function openAtOnce(path: string, { what = 'file' }: ReadLimits): number {
  try {
    return openSync(path, READ_FLAGS);
  } catch (cause) {
    throw openFailure(path, what, cause);
  }
}
