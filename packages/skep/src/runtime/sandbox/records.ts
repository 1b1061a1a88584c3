import { stat } from 'node:fs/promises';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { ifThere } from '@skep/core/files/errno.ts';
import { parsedJson } from '@skep/core/json/parsed-json.ts';
import {
  bool,
  exactly,
  listOf,
  members,
  oneOf,
  optional,
  readAs,
  recordOf,
  text,
  textThat,
  wholeNumber,
  type Shape,
  type ShapeType,
} from '@skep/core/settings/shape.ts';
import { isDataPath } from '../../permissions/data-paths.ts';
import { isVolumeName } from '../../permissions/mounts.ts';
import type { WorkloadSpec } from '../runtime.ts';
import { userFile } from '../user-file.ts';
import { firstInside, identify, isRunning, type ProcessIdentity } from './linux-process.ts';
import { GATES, type Gate, type WorkloadPlaces } from './places.ts';

const policyShape = exactly({
  workload: text,
  allowAll: bool,
  hosts: listOf(text),
  ports: listOf(wholeNumber()),
  inbound: listOf(text),
  runtimeGateway: bool,
});

/** See `Limits`. */
const amount: Shape<number> = (value, fail) =>
  typeof value === 'number' && Number.isFinite(value) && value >= 0 ? value : fail('is no limit');

/** As `toISOString` writes it. */
const time = textThat(
  (value) => /^\d{4}-\d\d-\d\dT[\d:.]+Z$/.test(value) && !Number.isNaN(Date.parse(value)),
  'is no time',
);

const mountShape = members({ source: text, target: text, readOnly: bool });

const volumeShape = members({
  volume: textThat(isVolumeName, 'is no name of a volume'),
  target: text,
  readOnly: bool,
});

const specShape = members({
  createdAt: time,
  spec: members({
    name: text,
    reference: text,
    args: listOf(text),
    env: recordOf(text),
    labels: recordOf(text),
    stdio: bool,
    mounts: listOf(mountShape),
    overlays: optional(listOf(mountShape)),
    network: text,
    ports: listOf(members({ hostIp: text, hostPort: wholeNumber(), containerPort: wholeNumber() })),
    privileged: bool,
    limits: optional(members({ memory: amount, cpus: amount, pids: amount, disk: amount })),
    user: optional(text),
    isolation: optional(policyShape),
    data: optional(listOf(textThat(isDataPath, 'is no data path'))),
    volumes: optional(listOf(volumeShape)),
    learns: optional(bool),
  }),
});

export interface SavedSpec {
  readonly spec: WorkloadSpec;
  readonly createdAt: Date;
}

/** Secret variables are in no file: each start is given them. */
export function encodeSpec({ spec: { secretEnv: _kept, ...spec }, createdAt }: SavedSpec): string {
  return `${JSON.stringify({ spec, createdAt })}\n`;
}

/** The workload saved in this file; undefined when there is none. Throws `workload/state-unreadable`. */
export async function readSpec(file: string): Promise<SavedSpec | undefined> {
  const saved = await userFile(file);
  if (saved === undefined) return undefined;
  const unreadable = (why: string, ...path: readonly (string | number)[]): never => {
    throw new SkepError('workload/state-unreadable', {
      message: `"${file}" is not a saved workload${path.length === 0 ? '' : `: "${path.join('.')}" ${why}`}`,
    });
  };
  const { spec, createdAt } = specShape(parsedJson(saved), unreadable);
  return { spec, createdAt: new Date(createdAt) };
}

const identityShape = members({ pid: wholeNumber(), startTime: text });

const runShape = members({
  bootId: text,
  startedAt: time,
  /** The first process inside, as the host sees it. Missing between the launch and the second write. */
  init: optional(identityShape),
  /** The bubblewrap outside, which reports how the first process ended. */
  monitor: optional(identityShape),
  /** The pipes that its gateway or slirp4netns holds. */
  gates: optional(listOf(oneOf(...GATES))),
  /** Process number of what writes its log. */
  keeper: optional(wholeNumber()),
  /** Directories of its control group, where it is in one. */
  group: optional(listOf(text)),
});

export type RunRecord = ShapeType<typeof runShape>;

export type RunState =
  | { readonly state: 'created' }
  | {
      readonly state: 'running';
      readonly startedAt: Date;
      readonly init: ProcessIdentity;
      /** See `openGateway`. */
      readonly gates: readonly Gate[];
      readonly keeper?: number;
      readonly group?: readonly string[];
      /** See `Observed`. */
      readonly interrupted?: true;
    }
  | {
      readonly state: 'exited';
      readonly startedAt: Date;
      readonly exitCode: number;
      readonly group?: readonly string[];
    };

/** Told when nothing recorded how a workload ended: the machine went down, or bubblewrap itself was killed. */
export const UNKNOWN_EXIT = 255;

/**
 * Reads what is known of the latest start and looks at the process table. A workload whose processes are gone counts as
 * running until bubblewrap has written how it ended, so that nobody reads an exit status that is not there yet. Without
 * a record that can be read the process table alone decides, so that what runs can always be stopped.
 */
export async function runState(places: WorkloadPlaces, currentBoot: string): Promise<RunState> {
  // Written atomically, so damage came from outside; the process table says more than any guess.
  const record = readAs(runShape, parsedJson((await userFile(places.run)) ?? ''));
  if (record === undefined) return stateWithoutRecord(places);
  const startedAt = new Date(record.startedAt);
  const { gates = [], group, keeper } = record;
  const held = { ...(group && { group }), ...(keeper === undefined ? {} : { keeper }) };
  const init = record.init ?? (await launchedUnrecorded(places));
  // Nothing ran yet: the launch is under way at this moment, or it failed.
  if (!init) return { state: 'created' };
  const thisBoot = record.bootId === currentBoot;
  if (thisBoot && (await isRunning(init))) {
    return {
      state: 'running',
      startedAt,
      init,
      gates,
      ...held,
      ...(record.init ? {} : { interrupted: true }),
    };
  }
  const ending = thisBoot && record.monitor !== undefined && (await isRunning(record.monitor));
  const { exitCode } = await readStatus(places.status);
  if (ending && exitCode === undefined) return { state: 'running', startedAt, init, gates, ...held };
  return { state: 'exited', startedAt, exitCode: exitCode ?? UNKNOWN_EXIT, ...held };
}

async function stateWithoutRecord(places: WorkloadPlaces): Promise<RunState> {
  const launchedAt = (await ifThere(stat(places.log)))?.mtime;
  // The log is made at the first launch.
  if (launchedAt === undefined) return { state: 'created' };
  const init = await firstInside(places.stderr);
  if (init) return { state: 'running', startedAt: launchedAt, init, gates: [] };
  if ((await ifThere(stat(places.status))) === undefined) return { state: 'created' };
  const { exitCode } = await readStatus(places.status);
  return { state: 'exited', startedAt: launchedAt, exitCode: exitCode ?? UNKNOWN_EXIT };
}

/** A launcher that died before its second write left the process number in bubblewrap's own report. */
async function launchedUnrecorded(places: WorkloadPlaces): Promise<ProcessIdentity | undefined> {
  const { initPid } = await readStatus(places.status);
  if (initPid === undefined) return undefined;
  return (await identify(initPid)) ?? { pid: initPid, startTime: '' };
}

const statusShape = members({
  'child-pid': optional(wholeNumber()),
  'exit-code': optional(wholeNumber()),
});

/** Reads the documents of `--json-status-fd`; a line that is not finished yet is left for the next time. */
export async function readStatus(file: string) {
  const report = (await userFile(file)) ?? '';
  const status: { initPid?: number; exitCode?: number } = {};
  for (const line of report.slice(0, report.lastIndexOf('\n') + 1).split('\n')) {
    // A damaged line says nothing; the process table is asked as well.
    const document = readAs(statusShape, parsedJson(line));
    if (document?.['child-pid'] !== undefined) status.initPid = document['child-pid'];
    if (document?.['exit-code'] !== undefined) status.exitCode = document['exit-code'];
  }
  return status;
}

/** What there is of one workload. */
export interface KnownWorkload extends SavedSpec {
  readonly places: WorkloadPlaces;
  readonly run: RunState;
}
