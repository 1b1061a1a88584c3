import { type FileHandle, open, stat } from 'node:fs/promises';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { errnoOf } from '../files/errno.ts';
import { SkepError } from '../errors/skep-error.ts';
import type { Clock } from '../time/clock.ts';
import type { AuditSink } from './audit-log.ts';

export interface FileSinkOptions {
  /** Absolute; its directory must exist. */
  readonly path: string;
  /** Told of lines that could not be written and are lost. */
  readonly onLost: (lines: number, cause: unknown) => void;
  /** Bytes that may wait for a slow disk; further lines are lost, so that memory suffices. */
  readonly maxPendingBytes?: number;
  /**
   * With a clock the file is begun anew when its name leads elsewhere or nowhere, because a log rotator has moved it: looked
   * for before a write, once a second at the most. Without one whoever rotates it has `reopen` called.
   */
  readonly follow?: Pick<Clock, 'elapsed'>;
}

const LOOK_EVERY_MS = 1_000;

const MAX_PENDING = 16 * 1024 * 1024;

/**
 * Appends lines to a file that only its owner may read (mode 0600 when it is made). A failed write loses its lines and
 * the next one tries again with the file opened anew. Fails with `audit/unwritable` when the file cannot be opened at
 * start: a server that should audit and cannot does not start.
 */
export async function openFileSink(options: FileSinkOptions): Promise<AuditSink> {
  const sink = new FileSink(options);
  await sink.reopen();
  return sink;
}

class FileSink implements AuditSink {
  readonly #options: FileSinkOptions;
  #file: FileHandle | undefined;
  #waiting: string[] = [];
  #waitingBytes = 0;
  #torn = false;
  #writing: Promise<void> | undefined;
  #reopening: Promise<void> = Promise.resolve();
  #closed = false;
  #lookedAt = -Infinity;

  constructor(options: FileSinkOptions) {
    this.#options = options;
  }

  write(line: string): void {
    const size = Buffer.byteLength(line);
    if (this.#closed || this.#waitingBytes + size > (this.#options.maxPendingBytes ?? MAX_PENDING)) {
      const message = this.#closed ? 'the audit log is closed' : 'too many lines wait to be written';
      this.#options.onLost(1, new SkepError('audit/write-failed', { message }));
      return;
    }
    this.#waiting.push(line);
    this.#waitingBytes += size;
    this.#writing ??= this.#drain();
  }

  reopen(): Promise<void> {
    // One after the other: of two at once, each would leave the file of the other open.
    const done = this.#reopening.then(() => this.#reopen());
    this.#reopening = done.catch(() => undefined);
    return done;
  }

  async #reopen(): Promise<void> {
    if (this.#closed) return;
    // What was taken before belongs into the file as it was.
    await this.#writing;
    const before = this.#file;
    this.#file = await openForAppend(this.#options.path);
    await before?.close();
  }

  async close(): Promise<void> {
    this.#closed = true;
    await this.#reopening;
    await this.#writing;
    await this.#file?.close();
    this.#file = undefined;
  }

  /** Writes everything that waits, what came meanwhile included, one write for many lines. */
  async #drain(): Promise<void> {
    // A whole burst of requests goes out with one write: all that is read from connections in this turn.
    await nextTurn();
    while (this.#waiting.length > 0) {
      const lines = this.#waiting;
      this.#waiting = [];
      this.#waitingBytes = 0;
      await this.#append(lines);
    }
    this.#writing = undefined;
  }

  async #append(lines: readonly string[]): Promise<void> {
    const text = (this.#torn ? '\n' : '') + lines.join('');
    try {
      if (this.#file !== undefined && (await this.#isMoved(this.#file))) {
        const before = this.#file;
        this.#file = undefined;
        await before.close();
      }
      this.#file ??= await openForAppend(this.#options.path);
      await this.#file.appendFile(text);
      this.#torn = false;
    } catch (cause) {
      // Part of it may be there, in the middle of a line.
      this.#torn = this.#file !== undefined;
      const broken = this.#file;
      this.#file = undefined;
      this.#options.onLost(lines.length, cause);
      await broken?.close().catch((closing: unknown) => this.#options.onLost(0, closing));
    }
  }

  async #isMoved(file: FileHandle): Promise<boolean> {
    const { follow, path } = this.#options;
    if (follow === undefined || follow.elapsed() - this.#lookedAt < LOOK_EVERY_MS) return false;
    this.#lookedAt = follow.elapsed();
    const [own, named] = await Promise.all([file.stat(), stat(path).catch(() => undefined)]);
    return own.ino !== named?.ino || own.dev !== named.dev;
  }
}

async function openForAppend(path: string): Promise<FileHandle> {
  try {
    return await open(path, 'a', 0o600);
  } catch (cause) {
    throw new SkepError('audit/unwritable', {
      message: `cannot open the audit log "${path}": ${errnoOf(cause) ?? String(cause)}`,
      cause,
    });
  }
}
