import { watch } from 'node:fs';
import { open, stat, type FileHandle } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { ifThere } from '@skep/core/files/errno.ts';

const BLOCK = 64 * 1024;

/** The generation before the one that is written: the end of what was there when the log grew too large. */
export const earlierLog = (file: string): string => `${file}.1`;

/**
 * What the earlier generation adds before the current log: all of it, or as many of its last lines as the current one has
 * too few. Undefined when there is nothing to add.
 */
export async function earlierPart(file: string, tail: number | undefined): Promise<Buffer | undefined> {
  await using earlier = await ifThere(open(earlierLog(file)));
  if (!earlier) return undefined;
  const wanted = tail === undefined ? undefined : tail - lineCount(await logTail(file, tail));
  return wanted !== undefined && wanted <= 0 ? undefined : await lastLines(earlier, wanted);
}

const lineCount = (text: string): number =>
  text.split('\n').length - (text === '' || text.endsWith('\n') ? 1 : 0);

/** The last `lines` lines of a file as text; empty when there is no file. */
export async function logTail(file: string, lines: number): Promise<string> {
  await using handle = await ifThere(open(file));
  return handle ? (await lastLines(handle, lines)).toString('utf8') : '';
}

/** All that there is without `lines`. */
async function lastLines(handle: FileHandle, lines: number | undefined): Promise<Buffer> {
  const { size } = await handle.stat();
  const start = lines === undefined ? 0 : await tailStart(handle, size, lines);
  const { buffer } = await handle.read(Buffer.alloc(size - start), 0, size - start, start);
  return buffer;
}

export interface FollowOptions {
  readonly follow: boolean;
  readonly tail?: number | undefined;
  readonly signal: AbortSignal;
  /** True once nothing will be written any more. Asked again whenever something changes beside the file. */
  readonly over: () => Promise<boolean>;
  /** Longest time between two looks in milliseconds, for changes the system does not report. */
  readonly pollMs: number;
}

/** Yields the bytes of a growing file, from its start or its last lines, until it is over or the signal says so. */
export async function* followFile(file: string, options: FollowOptions): AsyncGenerator<Buffer> {
  const first = await ifThere(open(file));
  if (!first) return;
  let handle = first;
  try {
    using changes = options.follow ? new FileChanges(path.dirname(file)) : undefined;
    const { size } = await handle.stat();
    let at = options.tail === undefined ? 0 : await tailStart(handle, size, options.tail);
    let last = !options.follow;
    while (!options.signal.aborted) {
      // Asked before the read, so that what was written up to the end is still read.
      const next = await replacement(handle, file);
      const { bytesRead, buffer } = await handle.read(Buffer.alloc(BLOCK), 0, BLOCK, at);
      at += bytesRead;
      if (bytesRead > 0) yield buffer.subarray(0, bytesRead);
      else if (next !== undefined) {
        await handle.close();
        [handle, at] = [next, 0];
        continue;
      }
      // A file that became shorter was emptied because it had grown large; it goes on from its start.
      else if ((await handle.stat()).size < at) at = 0;
      else if (last) return;
      else if (await options.over()) last = true;
      else await changes?.next(options.pollMs, options.signal);
      await next?.close();
    }
  } finally {
    await handle.close();
  }
}

/** The file of that name, where it is another one than `handle` is of: that was put aside because it had grown large. */
async function replacement(handle: FileHandle, file: string): Promise<FileHandle | undefined> {
  const [was, is] = [await handle.stat(), await ifThere(stat(file))];
  return is === undefined || (is.ino === was.ino && is.dev === was.dev) ? undefined : ifThere(open(file));
}

/** Position of the first byte of the last `lines` lines; a last line without its newline counts. */
async function tailStart(handle: FileHandle, size: number, lines: number): Promise<number> {
  if (lines <= 0) return size;
  let seen = 0;
  for (let end = size; end > 0;) {
    const start = Math.max(0, end - BLOCK);
    const { buffer } = await handle.read(Buffer.alloc(end - start), 0, end - start, start);
    for (let at = buffer.length - 1; at >= 0; at -= 1) {
      if (buffer[at] !== 0x0a || start + at === size - 1) continue;
      seen += 1;
      if (seen === lines) return start + at + 1;
    }
    end = start;
  }
  return 0;
}

/** Wakes up when something in a directory changes, or after a while. */
export class FileChanges {
  readonly #watcher;
  /** Something changed since the last wait: the caller may have looked before it did. */
  #changed = false;
  #wake = () => {};

  constructor(directory: string, { recursive = false } = {}) {
    this.#watcher = watch(directory, { recursive }, () => {
      this.#changed = true;
      this.#wake();
    });
    // Without notifications (the directory was removed, inotify is used up) the time limit of next() remains.
    this.#watcher.on('error', () => {});
  }

  async next(ms: number, signal: AbortSignal): Promise<void> {
    const woken = new AbortController();
    this.#wake = () => woken.abort();
    if (!this.#changed) {
      await pause(ms, undefined, { signal: AbortSignal.any([woken.signal, signal]) }).catch(() => {
        // Both endings of the pause mean "look again"; the caller checks its signal.
      });
    }
    this.#changed = false;
  }

  [Symbol.dispose](): void {
    this.#watcher.close();
  }
}
