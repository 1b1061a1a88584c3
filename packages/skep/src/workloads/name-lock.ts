import { join } from 'node:path';
import { acquireLock, unlessHeld, type Lock } from '@skep/core/files/lock.ts';
import type { Places } from '@skep/core/files/places.ts';
import { savedNames } from '../run-config/file.ts';
import { statusNames } from '../supervisor/state.ts';

export interface LockWait {
  readonly places: Places;
  readonly signal: AbortSignal;
  /** How long to wait for another holder, milliseconds; a moment by default. */
  readonly waitMs?: number;
}

/** Where no workload's own lock can be: its name begins with a letter or digit. */
const gatePath = (places: Places): string => join(places.locksDir, '.preparing.lock');
const namePath = (places: Places, name: string): string => join(places.locksDir, `run.${name}.lock`);

/** Longer than clearing up takes. */
const CLEARING_MS = 60_000;
/** Longer than `isBeingMade` looks. */
const LOOKING_MS = 250;

/**
 * Held by everything that makes something for a workload which is not there yet. Others may hold it too; only clearing
 * up has to wait until nobody does, see `whileNothingIsMade`.
 */
export function holdPreparing({ places, signal }: LockWait): Promise<Lock> {
  const what = 'removing what is left';
  return acquireLock(gatePath(places), { waitMs: CLEARING_MS, what, signal, shared: true });
}

/** Makes a name this command's own, with everything that is made for it. Fails with `file/locked` when it is another's. */
export async function lockName(name: string, wait: LockWait): Promise<Lock> {
  const { places, signal, waitMs = LOOKING_MS } = wait;
  const gate = await holdPreparing(wait);
  try {
    const what = `workload "${name}"`;
    const own = await acquireLock(namePath(places, name), { waitMs, what, signal });
    const release = (): void => {
      own.release();
      gate.release();
    };
    return { isValid: () => own.isValid(), release, [Symbol.dispose]: release };
  } catch (error) {
    gate.release();
    throw error;
  }
}

/** Runs `action` while no command makes anything for a workload; false, without running it, when one does now. */
export async function whileNothingIsMade(
  { places, signal }: LockWait,
  action: () => Promise<void>,
): Promise<boolean> {
  using gate = await unlessHeld(
    acquireLock(gatePath(places), { waitMs: 0, what: 'preparing a workload', signal }),
  );
  if (gate) await action();
  return gate !== undefined;
}

/** True while a command has the name and works on it. */
export async function isBeingMade(name: string, places: Places): Promise<boolean> {
  using lock = await unlessHeld(
    acquireLock(namePath(places, name), { waitMs: 0, what: `workload "${name}"` }),
  );
  return lock === undefined;
}

/**
 * Names of all workloads, sorted: with a status, or with a saved configuration that a killed command left. Who knows
 * already which have a status says so.
 */
export async function knownNames(places: Places, withStatus?: Iterable<string>): Promise<readonly string[]> {
  const names = new Set(withStatus ?? (await statusNames(places)));
  for (const name of await savedNames(places)) {
    if (!names.has(name) && !(await isBeingMade(name, places))) names.add(name);
  }
  return [...names].toSorted();
}
