import { spawn } from 'node:child_process';
import { chmodSync, closeSync, constants, openSync, readFileSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import { errnoOf } from '@skep/core/files/errno.ts';
import { coverInherited } from './inherited-descriptors.ts';
import type { WorkloadPlaces } from './places.ts';

const { O_NONBLOCK, O_RDONLY, O_RDWR, O_WRONLY } = constants;

/** As much as an engine keeps per container (runtime/docker/container-body.ts): one generation and the one before it. */
const LIMIT_BYTES = 10 * 1024 * 1024;

/** What a workload writes to. Its keeper ends with the last process that holds it. */
export interface LogPipe extends Disposable {
  readonly descriptor: number;
  /** The process number of the keeper. */
  readonly keeper: number | undefined;
}

/**
 * Opens what a workload logs to: a pipe, and behind it a process of its own that writes the log and keeps it small, whether
 * or not a supervisor is there. A file that the server wrote itself would be as large as it wants until somebody looks.
 * What does not fit on the disk is dropped, and the server is not made to wait for it.
 */
export function openLogPipe(
  places: WorkloadPlaces,
  inherited: readonly number[],
  limitBytes = LIMIT_BYTES,
): LogPipe {
  using opened = new DisposableStack();
  // A server that holds it can shut it with its mode.
  chmodSync(places.stderr, 0o600);
  const descriptor = opened.adopt(openSync(places.stderr, O_RDWR), closeSync);
  const keeper = startKeeper(places, inherited, limitBytes);
  const held = opened.move();
  return { descriptor, keeper, [Symbol.dispose]: () => held.dispose() };
}

function startKeeper(
  places: WorkloadPlaces,
  inherited: readonly number[],
  limitBytes: number,
): number | undefined {
  using opened = new DisposableStack();
  const reader = opened.adopt(openSync(places.stderr, O_RDONLY), closeSync);
  const log = opened.adopt(openSync(places.log, 'a', 0o600), closeSync);
  const devNull = opened.adopt(openSync('/dev/null', 'r+'), closeSync);
  const child = spawn('/bin/sh', ['-c', KEEP, 'skep-log', `${Math.floor(limitBytes / 512)}`], {
    cwd: places.directory,
    env: { PATH: '/usr/bin:/bin:/usr/local/bin:/run/current-system/sw/bin' },
    detached: true,
    stdio: coverInherited([reader, log, devNull], inherited, devNull),
  });
  // Without it the server's words are lost, and it is started all the same.
  child.on('error', () => {});
  child.unref();
  return child.pid;
}

/**
 * The kernel ends the copying at the limit (RLIMIT_FSIZE, in blocks of 512 bytes), where the rest of what was just read is
 * lost, or there is nobody left who could write. Anything else is a disk that is full, or a workload that was removed.
 */
const KEEP = `
umask 077
while :; do
  (ulimit -f "$1"; exec cat >>output.log) && exit 0
  size=$(wc -c <output.log) || size=0
  if [ "$size" -ge $(($1 * 512)) ]; then mv -f output.log output.log.1; continue; fi
  [ -p life ] || exit 0
  head -c 65536 >/dev/null
done`;

const LOOK_MS = 2;
const LATEST_MS = 2_000;

/** Waits until everything is in the log that has been written by now: while something runs, until its keeper has nothing to read. */
export async function untilLogged(places: WorkloadPlaces, keeper: number | undefined): Promise<void> {
  for (let waited = 0; waited < LATEST_MS; waited += LOOK_MS) {
    if (!isRead(places) || (keeper !== undefined && waitsForMore(keeper))) return;
    await pause(LOOK_MS);
  }
}

/** True while a keeper reads the pipe. */
export function isRead({ stderr }: Pick<WorkloadPlaces, 'stderr'>): boolean {
  try {
    closeSync(openSync(stderr, O_WRONLY | O_NONBLOCK));
    return true;
  } catch (error) {
    if (errnoOf(error) === undefined) throw error;
    return false;
  }
}

/** True when the program that reads the pipe sleeps: a write wakes it before the writer goes on. */
function waitsForMore(keeper: number): boolean {
  try {
    const children = readFileSync(`/proc/${keeper}/task/${keeper}/children`, 'latin1').trim();
    return /^\d+$/.test(children) && / \(cat\) S /.test(readFileSync(`/proc/${children}/stat`, 'latin1'));
  } catch (error) {
    if (errnoOf(error) === undefined) throw error;
    return false;
  }
}
