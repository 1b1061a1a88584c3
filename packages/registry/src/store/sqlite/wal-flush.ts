import { type FileHandle, open } from 'node:fs/promises';

/**
 * Makes commits durable without stopping the thread that answers requests, as SQLite's own flush (`synchronous = full`)
 * does: the connection writes the log, and another thread flushes it before the commit is acknowledged. Commits that come
 * while a flush runs share the next one.
 *
 * A second descriptor does no harm: the log holds no locks, and stays the same file as long as a connection is open.
 */
export class WalFlush {
  readonly #path: string;
  #file: FileHandle | undefined;
  #running: Promise<void> | undefined;
  #next: Promise<void> | undefined;

  constructor(databasePath: string) {
    this.#path = `${databasePath}-wal`;
  }

  /** Resolves when all that was committed before this call survives a power cut. */
  flush(): Promise<void> {
    if (this.#running === undefined) return (this.#running = this.#run());
    // The one that runs may have begun before this commit.
    return (this.#next ??= this.#running.catch(() => {}).then(() => this.#startNext()));
  }

  /** Idempotent. */
  async close(): Promise<void> {
    await Promise.allSettled([this.#running, this.#next]);
    const file = this.#file;
    this.#file = undefined;
    await file?.close();
  }

  #startNext(): Promise<void> {
    this.#next = undefined;
    return (this.#running = this.#run());
  }

  async #run(): Promise<void> {
    try {
      // Opened for writing, because Windows flushes nothing else.
      this.#file ??= await open(this.#path, 'r+');
      await this.#file.datasync();
    } finally {
      this.#running = undefined;
    }
  }
}
