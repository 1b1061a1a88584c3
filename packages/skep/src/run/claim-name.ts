import { constants } from 'node:fs';
import { access } from 'node:fs/promises';
import { unlessHeld, type Lock } from '@skep/core/files/lock.ts';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { makeDirectory } from '@skep/core/files/make-directory.ts';
import type { Places } from '@skep/core/files/places.ts';
import { silentLog } from '@skep/core/log/log.ts';
import { writeFailure } from '@skep/core/files/write-failure.ts';
import type { Context } from '../cli/context.ts';
import { SupervisorClient } from '../supervisor/client.ts';
import { findRunConfig, savedNames } from '../run-config/file.ts';
import type { Runtime } from '../runtime/runtime.ts';
import { isGoing, keeperOf } from '../supervisor/kept-data.ts';
import { inspectOwn } from '../supervisor/launch.ts';
import type { Wanted } from '../supervisor/policy.ts';
import { ensureOwn } from '../supervisor/private-directory.ts';
import { hostOf, readStatus, type WorkloadStatus } from '../supervisor/state.ts';
import { ownerOf } from '../supervisor/owner.ts';
import { lockName } from '../workloads/name-lock.ts';

interface Claim {
  /** How the person gives it another name. */
  readonly rename?: string;
  readonly group?: string;
  /** What a run in the foreground is of: what it left when it was killed is its own. */
  readonly again?: Wanted;
}

/**
 * Makes a name this command's own until the lock is released, so that two runs of one name cannot both find it free.
 * Fails with `run/name-taken` when a workload has it. What is left of a failed or killed run of that name is removed,
 * so that a run can be repeated (docs/behaviour/run.md#taken-names), unless that was in another group.
 */
export async function claimName(
  name: string,
  runtime: Runtime,
  context: Context,
  { rename = 'choose another --name', group, again }: Claim = {},
): Promise<Lock> {
  const { places, uid, signal } = context;
  await checkPlaces(places, uid);
  const lock = await unlessHeld(lockName(name, context));
  if (!lock) throw taken(name, rename);
  try {
    const status = await readStatus(places, name);
    const killed = again !== undefined && (await isLeftOf(again, status, context));
    if (status !== undefined && status.status !== 'error' && !killed) throw taken(name, rename);
    // A saved configuration alone is what a command that was killed left, data alone what a removal of it left.
    const there = status !== undefined || (await savedNames(places)).includes(name);
    const left = there || (await isGoing(places, name));
    if (there) await refuseOtherGroup(name, group, context, rename);
    if (killed) await removeHere(name, context);
    else if (left) await new SupervisorClient(context).remove(name, { signal });
    await inspectOwn(name, { runtime, owner: ownerOf(places.stateDir) });
    return lock;
  } catch (error) {
    lock.release();
    throw error;
  }
}

/**
 * True for what the same command in the foreground has left, of the same server whatever its version: it would have removed
 * that, had it not been killed. Whoever runs it as the process of a container or service starts it again so. One that a
 * supervisor has taken up meanwhile is the supervisor's.
 */
async function isLeftOf(
  again: Wanted,
  status: WorkloadStatus | undefined,
  { places, isAlive }: Context,
): Promise<boolean> {
  if (status?.foreground !== true || hostOf(status, isAlive) !== undefined) return false;
  const saved = await findRunConfig(places, again.name);
  if (saved === undefined) return false;
  // An address has no version.
  return saved.remote_url === undefined ? keeperOf(saved) === keeperOf(again) : saved.image === again.image;
}

/** Without a supervisor, which would take it up before it removes it. */
async function removeHere(name: string, context: Context): Promise<void> {
  const { openHost } = await import('../cli/open-host.ts');
  await openHost(context, silentLog, { foreground: true }).remove(name);
}

/** A run that is repeated may not take a failed workload out of the group it was put into. */
async function refuseOtherGroup(
  name: string,
  group: string | undefined,
  { places }: Context,
  rename: string,
): Promise<void> {
  const before = (await findRunConfig(places, name))?.group;
  if (before === undefined || group === undefined || before === group) return;
  throw new SkepError('run/name-taken', {
    message: `workload '${name}' is already in group '${before}'`,
    hint: `${rename}, run it in that group, or remove it with skep rm ${name}`,
  });
}

function taken(name: string, rename: string): SkepError {
  return new SkepError('run/name-taken', {
    message: `workload with name '${name}' already exists`,
    hint: `${rename}, or remove it with skep rm ${name}`,
  });
}

/**
 * Fails with `file/write-failed` when a directory that a workload needs cannot be written, before anything is
 * downloaded or made: a read-only or wrong directory would otherwise be noticed half-way. State and data have to be
 * this user's own (`supervisor/unreachable`).
 */
async function checkPlaces(places: Places, uid: number | undefined): Promise<void> {
  await ensureOwn(places, uid);
  const wanted = [places.runConfigsDir, places.locksDir, places.statusesDir, places.logsDir];
  for (const one of await Promise.allSettled(wanted.map(checkDirectory)))
    if (one.status === 'rejected') throw one.reason;
}

async function checkDirectory(directory: string): Promise<void> {
  try {
    await makeDirectory(directory, 0o750);
    await access(directory, constants.W_OK);
  } catch (cause) {
    throw writeFailure(`cannot write to "${directory}"`, directory, cause);
  }
}
