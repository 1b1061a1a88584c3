import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { acquireLock, type Lock } from '@skep/core/files/lock.ts';
import type { Places } from '@skep/core/files/places.ts';
import { readAddress } from './address.ts';
import { ensureOwn } from './private-directory.ts';
import type { ProcessIdentity } from './process-identity.ts';
import { spawnSupervisor, type SpawnedSupervisor, type SpawnOptions } from './spawn-supervisor.ts';

/** A supervisor that begins to come up. */
export interface Woken {
  /** Starts it, unless that is done already. */
  readonly begin: () => SpawnedSupervisor;
  /** Keeps other commands from starting one too; let go as soon as this one is up, has failed, or is not to begin any more. */
  readonly lock: Pick<Lock, 'release'>;
}

/** Nobody may wait for the lock longer than a person notices because a command asks something before it begins. */
const BEGIN_MS = 150;

export interface WakeOptions extends SpawnOptions {
  readonly places: Places;
  readonly uid: number | undefined;
  readonly isAlive: (process: ProcessIdentity) => boolean;
}

/** Held by the one of many commands that starts a supervisor. */
export const startLock = (places: Places): string => join(places.locksDir, 'supervisor-start.lock');

/**
 * Starts a supervisor when the arguments of `skep run` are such that it will need one and there is none, before the program
 * for it is loaded and anything is planned; for what may run in an engine, when that is asked for, because until then it
 * would only take a processor from what asks (decision 0462). Undefined where there is nothing to start, or where something is in the way,
 * which the client finds and tells. Never rejects.
 */
export async function wakeEarly(argv: readonly string[], options: WakeOptions): Promise<Woken | undefined> {
  const { places, uid, isAlive } = options;
  // Whoever begins with Skep gets no directories from a command line that was wrong.
  if (!needsSupervisor(argv) || !existsSync(places.stateDir) || !existsSync(places.dataDir)) return undefined;
  try {
    const address = readAddress(places, uid);
    // A watcher is about to bring it back.
    if (address && (isAlive(address) || (address.watcher && isAlive(address.watcher)))) return undefined;
    await ensureOwn(places, uid);
    const lock = await acquireLock(startLock(places), { waitMs: 0, what: 'starting the supervisor' });
    try {
      const { begin, release } = beginner(options, lock);
      if (!mayNeedEngine(argv)) begin();
      return { begin, lock: { release } };
    } catch (error) {
      lock.release();
      throw error;
    }
  } catch {
    return undefined;
  }
}

function beginner(options: SpawnOptions, lock: Lock): Pick<Woken, 'begin'> & Woken['lock'] {
  let spawned: SpawnedSupervisor | undefined;
  const begin = (): SpawnedSupervisor => {
    clearTimeout(late);
    return (spawned ??= begun(spawnSupervisor(options), lock));
  };
  const late = setTimeout(begin, BEGIN_MS).unref();
  return {
    begin,
    release() {
      clearTimeout(late);
      lock.release();
    },
  };
}

/** What cannot be started is one that ended without a word: the client starts another, and tells why that fails. */
function begun(starting: Promise<SpawnedSupervisor>, lock: Lock): SpawnedSupervisor {
  const word = starting.then(
    (spawned) => spawned.word,
    () => undefined,
  );
  const over = starting.then(
    (spawned) => spawned.over,
    () => {},
  );
  void word.finally(() => lock.release());
  return { word, over };
}

/** An image or a name, that is, and not a package or a server elsewhere, which say so themselves. */
export const mayNeedEngine = (argv: readonly string[]): boolean =>
  !argv.some((word) => /^[a-z]+:\/\//i.test(word));

/** Looks at no more than it must: what it takes for a run may fail, and what it does not see needs a moment longer. */
function needsSupervisor(argv: readonly string[]): boolean {
  const end = argv.indexOf('--');
  const flags = end === -1 ? argv : argv.slice(0, end);
  return !flags.some((flag) => OTHERWISE.test(flag));
}

/** In the foreground nobody else hosts the workload, help and explanations need nobody; short ones may come together. */
const OTHERWISE = /^(?:--foreground|--learn|--help|--explain|-(?!-)[^=]*[fh])/;
