import { closeSync, existsSync, openSync, statSync } from 'node:fs';
import { readdir, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { DatabaseSync } from 'node:sqlite';
import { hasCode, SkepError } from '../errors/skep-error.ts';
import { systemClock } from '../time/clock.ts';
import { removeEmpty } from './atomic-write.ts';
import { makeDirectory } from './make-directory.ts';
import { writeFailure } from './write-failure.ts';
import { errnoOf, ifThere } from './errno.ts';

export interface LockOptions {
  /** How long to wait for another holder, milliseconds; 0 tries once. */
  readonly waitMs: number;
  /** What is locked, for the message, for example `workload "fetch"`. */
  readonly what: string;
  readonly signal?: AbortSignal;
  /** Holders of a shared lock exclude only exclusive ones. Exclusive by default. */
  readonly shared?: boolean;
}

export interface Lock extends Disposable {
  /** Idempotent, as is disposing of it. The lock file stays; see `removeUnusedLocks`. */
  release(): void;
  /** False when the file lost its name: whoever makes it anew holds another lock. */
  isValid(): Promise<boolean>;
}

const POLL_MS = 25;

/**
 * Takes an advisory lock that also excludes other holders in this process, and that the kernel frees when the process
 * dies. Node offers no flock; SQLite's lock on an empty database file is the same lock on every platform.
 * Fails with `file/locked` after `waitMs`, with `file/write-failed` when the file cannot be made, or with the signal's
 * reason.
 */
export async function acquireLock(path: string, options: LockOptions): Promise<Lock> {
  const { DatabaseSync: Database } = process.getBuiltinModule('node:sqlite');
  const started = performance.now();
  for (;;) {
    options.signal?.throwIfAborted();
    await createPrivate(path, options.what);
    const found = lockFile(path, Database, options.shared ?? false);
    if (found === 'removed') continue;
    if (found !== 'held') {
      const release = (): void => {
        if (found.database.isOpen) found.database.close();
      };
      return {
        release,
        [Symbol.dispose]: release,
        isValid: async () => found.database.isOpen && inodeOf(path) === found.inode,
      };
    }
    if (performance.now() - started >= options.waitMs) {
      throw new SkepError('file/locked', { message: `another process is working on ${options.what}` });
    }
    await systemClock.sleep(POLL_MS, options.signal);
  }
}

/** Runs `action` under the lock and releases it whatever happens. */
export async function withLock<T>(path: string, options: LockOptions, action: () => Promise<T>): Promise<T> {
  using _held = await acquireLock(path, options);
  return await action();
}

/** What comes of work that needs a lock; undefined when another holds it. */
export async function unlessHeld<T>(work: Promise<T>): Promise<T | undefined> {
  try {
    return await work;
  } catch (error) {
    if (hasCode(error, 'file/locked')) return undefined;
    throw error;
  }
}

/**
 * Removes the lock files of a directory that nobody holds, and the directory when it is empty then. Each is removed by
 * its exclusive holder, and `acquireLock` notices, so that two processes never lock different files of one name.
 */
export async function removeUnusedLocks(directory: string): Promise<void> {
  for (const name of (await ifThere(readdir(directory))) ?? []) {
    const path = join(directory, name);
    await unlessHeld(withLock(path, { waitMs: 0, what: name }, () => rm(path, { force: true })));
  }
  await removeEmpty(directory);
}

/**
 * Never opened when it is there, and closed before anything else of this process can lock it: closing it would give up
 * what this process holds of it (fcntl(2)).
 */
async function createPrivate(path: string, what: string): Promise<void> {
  if (existsSync(path)) return;
  try {
    await makeDirectory(dirname(path), 0o750);
    if (!existsSync(path)) closeSync(openSync(path, 'a', 0o600));
  } catch (cause) {
    // The directory was removed as unused; whoever locks finds the file missing and comes back.
    if (errnoOf(cause) === 'ENOENT') return;
    throw writeFailure(`cannot lock ${what} with "${path}"`, path, cause);
  }
}

interface Locked {
  readonly database: DatabaseSync;
  readonly inode: bigint;
}

/**
 * The database that holds the lock now, `held` when another has it, `removed` when the file lost its name meanwhile: a
 * lock on such a file excludes nobody.
 */
function lockFile(path: string, Database: typeof DatabaseSync, shared: boolean): Locked | 'held' | 'removed' {
  const before = inodeOf(path);
  if (before === undefined) return 'removed';
  let database;
  try {
    database = tryLock(new Database(path, { timeout: 0 }), shared);
  } catch (error) {
    if (inodeOf(path) !== before) return 'removed';
    throw error;
  }
  if (database === undefined) return 'held';
  if (inodeOf(path) === before) return { database, inode: before };
  database.close();
  return 'removed';
}

function inodeOf(path: string): bigint | undefined {
  return statSync(path, { bigint: true, throwIfNoEntry: false })?.ino;
}

/** Undefined when another holds the lock. Nothing is ever written into the file. */
function tryLock(database: DatabaseSync, shared: boolean): DatabaseSync | undefined {
  try {
    // No journal lies beside the lock. A transaction that has read holds SQLite's shared lock.
    const begin = shared ? 'BEGIN; SELECT count(*) FROM sqlite_schema' : 'BEGIN EXCLUSIVE';
    database.exec(`PRAGMA journal_mode = MEMORY; ${begin}`);
    return database;
  } catch (error) {
    database.close();
    if (isBusy(error)) return undefined;
    throw error;
  }
}

/** SQLITE_BUSY; extended codes keep the primary one in the low byte. */
function isBusy(error: unknown): boolean {
  return (
    error instanceof Error &&
    'errcode' in error &&
    typeof error.errcode === 'number' &&
    (error.errcode & 0xff) === 5
  );
}
