import { copyFile } from 'node:fs/promises';
import { join } from 'node:path';
import { SkepError, hasCode } from '@skep/core/errors/skep-error.ts';
import { atomicWrite, removeFile } from '@skep/core/files/atomic-write.ts';
import type { Places } from '@skep/core/files/places.ts';
import { readJson } from '@skep/core/files/read-limited.ts';
import {
  members,
  oneOf,
  optional,
  text,
  textThat,
  wholeNumber,
  withDefault,
  type ShapeType,
} from '@skep/core/settings/shape.ts';
import { checkWorkloadName } from '../settings/workload-name.ts';
import { damagedHint, namesIn } from '../run-config/file.ts';

const isTime = (value: string): boolean =>
  /^\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d(?:\.\d+)?)?Z$/.test(value) && !Number.isNaN(Date.parse(value));
const time = textThat(isTime, 'is no time');

/** What a status file must be. */
const statusShape = members({
  status: oneOf('starting', 'running', 'unhealthy', 'stopping', 'stopped', 'removing', 'error'),
  /** What a person should know about it. */
  status_context: optional(text),
  created_at: time,
  updated_at: time,
  started_at: optional(time),
  /** The process that hosts the workload's proxy; 0 when none does. */
  process_id: wholeNumber(0),
  /** Start time of that process, so that a reused pid is not taken for it. */
  process_started: withDefault(text, ''),
});
/** One workload's status file (docs/behaviour/run.md#status). */
export type WorkloadStatus = ShapeType<typeof statusShape>;
export type StatusWord = WorkloadStatus['status'];

const MAX_STATUS_BYTES = 64 * 1024;

const pathOf = (places: Places, name: string): string =>
  join(places.statusesDir, `${checkWorkloadName(name)}.json`);

/**
 * Undefined when there is none. A damaged file is copied to `<file>.corrupted` and fails with
 * `workload/state-unreadable`: writes are atomic, so the damage came from outside and is not guessed away.
 */
export async function readStatus(places: Places, name: string): Promise<WorkloadStatus | undefined> {
  const path = pathOf(places, name);
  try {
    return statusShape(await readJson(path, { maxBytes: MAX_STATUS_BYTES, what: 'status file' }), (why) => {
      throw new SkepError('workload/state-unreadable', { message: why });
    });
  } catch (error) {
    if (hasCode(error, 'file/not-found')) return undefined;
    // For whoever looks into it; what cannot even be copied is as much of an error as what cannot be read.
    await copyFile(path, `${path}.corrupted`).catch(() => {});
    throw new SkepError('workload/state-unreadable', {
      message: `the status of workload "${name}" cannot be read: "${path}" is damaged`,
      hint: damagedHint(name),
      cause: error,
    });
  }
}

export async function writeStatus(places: Places, name: string, status: WorkloadStatus): Promise<void> {
  await atomicWrite(pathOf(places, name), `${JSON.stringify(status, null, 2)}\n`, { mode: 0o600 });
}

export async function deleteStatus(places: Places, name: string): Promise<void> {
  await removeFile(pathOf(places, name));
  await removeFile(`${pathOf(places, name)}.corrupted`);
}

/** Names of all workloads that have a status, sorted. */
export async function statusNames(places: Places): Promise<readonly string[]> {
  return namesIn(places.statusesDir, '.json');
}

const SHOULD_RUN: Readonly<Record<StatusWord, boolean>> = {
  starting: true,
  running: true,
  unhealthy: true,
  stopping: false,
  stopped: false,
  removing: false,
  error: false,
};

/** True for what should run whenever a supervisor can make it: it survives a crash and a reboot. */
export function shouldRun(status: StatusWord): boolean {
  return SHOULD_RUN[status];
}

/** True while something is left to be done for it. */
export function isUnfinished(status: StatusWord): boolean {
  return shouldRun(status) || status === 'stopping' || status === 'removing';
}
