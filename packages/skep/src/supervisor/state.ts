import { copyFile } from 'node:fs/promises';
import { sep } from 'node:path';
import { SkepError, hasCode } from '@skep/core/errors/skep-error.ts';
import { atomicWrite, removeFile, type AtomicWriteOptions } from '@skep/core/files/atomic-write.ts';
import type { Places } from '@skep/core/files/places.ts';
import { readJsonAtOnce } from '@skep/core/files/read-at-once.ts';
import {
  bool,
  members,
  oneOf,
  optional,
  text,
  textThat,
  wholeNumber,
  withDefault,
  type ShapeType,
} from '@skep/core/settings/shape.ts';
import { utcTime, type Clock } from '@skep/core/time/clock.ts';
import { checkWorkloadName } from '../settings/workload-name.ts';
import { damagedHint, namesIn } from '../run-config/file.ts';
import type { ProcessIdentity } from './process-identity.ts';

const isTime = (value: string): boolean =>
  /^\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d(?:\.\d+)?)?Z$/.test(value) && !Number.isNaN(Date.parse(value));
const time = textThat(isTime, 'is no time');

/** What a status file must be. */
const statusShape = members({
  status: oneOf(
    'starting',
    'running',
    'unhealthy',
    'unauthenticated',
    'auth_retrying',
    'stopping',
    'stopped',
    'removing',
    'policy_stopped',
    'error',
  ),
  /** What a person should know about it. */
  status_context: optional(text),
  created_at: time,
  updated_at: time,
  started_at: optional(time),
  /** The process that hosts the workload's proxy; 0 when none does. */
  process_id: wholeNumber(0),
  /** Start time of that process, so that a reused pid is not taken for it. */
  process_started: withDefault(text, ''),
  /** That process is a command which removes the workload when it ends. */
  foreground: optional(bool),
});
/** One workload's status file (docs/behaviour/run.md#status). */
export type WorkloadStatus = ShapeType<typeof statusShape>;
export type StatusWord = WorkloadStatus['status'];

const MAX_STATUS_BYTES = 64 * 1024;

const pathOf = (places: Places, name: string): string =>
  `${places.statusesDir}${sep}${checkWorkloadName(name)}.json`;

/**
 * Undefined when there is none. A damaged file is copied to `<file>.corrupted` and fails with
 * `workload/state-unreadable`: writes are atomic, so the damage came from outside and is not guessed away.
 */
export async function readStatus(places: Places, name: string): Promise<WorkloadStatus | undefined> {
  try {
    return await checkStatusFile(places, name);
  } catch (error) {
    if (hasCode(error, 'file/not-found')) return undefined;
    const path = pathOf(places, name);
    // For whoever looks into it; what cannot even be copied is as much of an error as what cannot be read.
    await copyFile(path, `${path}.corrupted`).catch(() => {});
    throw new SkepError('workload/state-unreadable', {
      message: `the status of workload "${name}" cannot be read: "${path}" is damaged`,
      hint: damagedHint(name),
      cause: error,
    });
  }
}

/** Only looks; fails with `file/not-found` or whatever is wrong with the file. */
export async function checkStatusFile(places: Places, name: string): Promise<WorkloadStatus> {
  const limits = { maxBytes: MAX_STATUS_BYTES, what: 'status file' };
  return statusShape(readJsonAtOnce(pathOf(places, name), limits).value, (why) => {
    throw new SkepError('workload/state-unreadable', { message: why });
  });
}

export async function writeStatus(
  places: Places,
  name: string,
  status: WorkloadStatus,
  options: Pick<AtomicWriteOptions, 'durable'> = {},
): Promise<void> {
  await atomicWrite(pathOf(places, name), `${JSON.stringify(status, null, 2)}\n`, {
    mode: 0o600,
    ...options,
  });
}

export async function deleteStatus(places: Places, name: string): Promise<void> {
  await removeFile(pathOf(places, name));
  await removeFile(`${pathOf(places, name)}.corrupted`);
}

/** Names of all workloads that have a status, sorted. */
export async function statusNames(places: Places): Promise<readonly string[]> {
  return namesIn(places.statusesDir, '.json');
}

/** True while something is left to be done for it. */
export function isUnfinished(status: StatusWord): boolean {
  return status !== 'stopped' && status !== 'error' && status !== 'policy_stopped';
}

/** True for what should run whenever a supervisor can make it: it survives a crash and a reboot. */
export function shouldRun(status: StatusWord): boolean {
  return isUnfinished(status) && !wasEnded(status);
}

/** True for what somebody does not want to run any more. */
export function wasEnded(status: StatusWord): boolean {
  return status === 'stopped' || status === 'stopping' || status === 'removing';
}

type IsAlive = (process: ProcessIdentity) => boolean;

/** The process that hosts a workload with this status, when it is alive. */
export function hostOf(status: WorkloadStatus, isAlive: IsAlive): ProcessIdentity | undefined {
  const host = { pid: status.process_id, started: status.process_started };
  return host.pid !== 0 && isAlive(host) ? host : undefined;
}

export interface Looking {
  readonly isAlive: IsAlive;
  /** Also what a living process starts, takes up, ends or removes at this moment. */
  readonly alsoUnderWay?: boolean;
}

/** What all status files say, by name, sorted; undefined for what cannot be read, or went while we looked. */
export type Statuses = ReadonlyMap<string, WorkloadStatus | undefined>;

/** Reads all status files; what cannot be read is told. */
export async function readStatuses(
  places: Places,
  tellDamaged: (name: string, error: unknown) => void,
): Promise<Statuses> {
  const statuses = new Map<string, WorkloadStatus | undefined>();
  for (const name of await statusNames(places)) {
    try {
      statuses.set(name, await readStatus(places, name));
    } catch (error) {
      statuses.set(name, undefined);
      tellDamaged(name, error);
    }
  }
  return statuses;
}

const UNDER_WAY: ReadonlySet<StatusWord> = new Set(['starting', 'stopping', 'removing']);

/** Names with something left to do that no living process does. What cannot be read is none of them. */
export function unhosted(statuses: Statuses, { isAlive, alsoUnderWay = false }: Looking): readonly string[] {
  const names: string[] = [];
  for (const [name, status] of statuses) {
    if (!status || !isUnfinished(status.status)) continue;
    if (!hostOf(status, isAlive) || (alsoUnderWay && UNDER_WAY.has(status.status))) names.push(name);
  }
  return names;
}

/** Writes one workload's status, in the order told. The process that holds it hosts the workload. */
export interface StatusRecord {
  /** `context` is for people. Hosting states carry this process's identity, the others none. */
  set(status: StatusWord, context?: string): Promise<void>;
}

interface StatusWriter {
  readonly places: Places;
  readonly clock: Clock;
  readonly self: ProcessIdentity;
  /** What it hosts ends with it. */
  readonly foreground?: boolean;
}

/** Times of an earlier status of the same workload are kept: `created_at` always, `started_at` while it runs. */
export function openStatusRecord(
  name: string,
  { places, clock, self, foreground = false }: StatusWriter,
): StatusRecord {
  let last: Promise<void> = Promise.resolve();

  async function write(status: StatusWord, context: string | undefined): Promise<void> {
    const now = utcTime(clock);
    // A damaged file is replaced: it was copied aside when it was read.
    const before = await readStatus(places, name).catch(() => undefined);
    const hosting = isUnfinished(status);
    const since = before?.status === 'running' ? before.started_at : undefined;
    const written: WorkloadStatus = {
      status,
      ...(context === undefined ? {} : { status_context: context }),
      created_at: before?.created_at ?? now,
      updated_at: now,
      ...(status === 'running' ? { started_at: since ?? now } : {}),
      process_id: hosting ? self.pid : 0,
      process_started: hosting ? self.started : '',
      ...(hosting && foreground ? { foreground } : {}),
    };
    // After a crash of the machine both mean that it should run, and somebody waits for this one.
    const isSame = before !== undefined && shouldRun(before.status) && shouldRun(status);
    await writeStatus(places, name, written, { durable: isSame ? 'either' : true });
  }

  return {
    set(status, context) {
      const next = last.then(() => write(status, context));
      last = next.catch(() => {
        // The caller of this set hears of the failure; the next set must still be tried.
      });
      return next;
    },
  };
}
