import { createHash } from 'node:crypto';
import { accessSync, constants, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { mkdir, readFile, rmdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { errnoOf } from '@skep/core/files/errno.ts';
import type { Limits } from '../../permissions/limits.ts';
import { ownPid } from './linux-process.ts';
import type { WorkloadPlaces } from './places.ts';

/** Where this process may make control groups of its own (cgroups(7)), and which release of them the kernel runs. */
export interface ControlGroups {
  readonly version: 1 | 2;
  /** By controller, the directory above our groups; with version 2 one for all. Without `cpu` that cannot be limited. */
  readonly memory: string;
  readonly pids: string;
  readonly cpu?: string;
}

/** Of all workloads of this machine's Skep, below where a controller is mounted. */
const OURS = 'skep';
const V2_CONTROLLERS = ['memory', 'pids', 'cpu'] as const;

/** Undefined where none can be made: for ordinary users, and in many containers. Makes the directory above the groups. */
export function findControlGroups(mounts = readFileSync('/proc/self/mounts', 'utf8')) {
  const rows = mounts.split('\n').map((line) => line.split(' '));
  const unified = rows.find(([, , kind]) => kind === 'cgroup2')?.[1];
  try {
    return (unified === undefined ? undefined : unifiedGroups(unified)) ?? separateGroups(rows);
  } catch (error) {
    // Read-only, not ours to change, or used in a way that lets nobody make groups below.
    if (errnoOf(error) !== undefined) return undefined;
    throw error;
  }
}

function unifiedGroups(mount: string): ControlGroups | undefined {
  const there = words(path.join(mount, 'cgroup.controllers'));
  if (!there.includes('memory') || !there.includes('pids')) return undefined;
  const wanted = V2_CONTROLLERS.filter((one) => there.includes(one));
  const ours = path.join(mount, OURS);
  accessSync(mount, constants.W_OK);
  handDown(mount, wanted);
  mkdirSync(ours, { recursive: true });
  handDown(ours, wanted);
  return { version: 2, memory: ours, pids: ours, ...(wanted.includes('cpu') ? { cpu: ours } : {}) };
}

/** Lets the groups below use these controllers. */
function handDown(group: string, controllers: readonly string[]): void {
  const file = path.join(group, 'cgroup.subtree_control');
  const missing = controllers.filter((one) => !words(file).includes(one));
  if (missing.length > 0) writeFileSync(file, missing.map((one) => `+${one}`).join(' '));
}

const words = (file: string): string[] => readFileSync(file, 'utf8').trim().split(' ');

function separateGroups(rows: readonly string[][]): ControlGroups | undefined {
  const ours = (controller: string): string | undefined => {
    const mount = rows.find(
      ([, , kind, options = '']) => kind === 'cgroup' && options.split(',').includes(controller),
    )?.[1];
    if (mount === undefined) return undefined;
    accessSync(mount, constants.W_OK);
    mkdirSync(path.join(mount, OURS), { recursive: true });
    return path.join(mount, OURS);
  };
  const [memory, pids, cpu] = [ours('memory'), ours('pids'), ours('cpu')];
  if (memory === undefined || pids === undefined) return undefined;
  return { version: 1, memory, pids, ...(cpu === undefined ? {} : { cpu }) };
}

/** The directories of one workload's control group, that of its memory first. */
export type ControlGroup = readonly string[];

/** Where the group of a workload is, if it has one. */
export function groupOf(
  { memory, pids, cpu }: ControlGroups,
  places: Pick<WorkloadPlaces, 'directory'>,
): ControlGroup {
  const at = [memory, pids, ...(cpu === undefined ? [] : [cpu])];
  return [...new Set(at.map((above) => path.join(above, groupName(places))))];
}

/**
 * Makes the group of a workload anew, with its limits and without what it counted before. Undefined when the kernel does
 * not let it be made now.
 */
export async function makeGroup(
  groups: ControlGroups,
  places: Pick<WorkloadPlaces, 'directory'>,
  limits: Limits,
): Promise<ControlGroup | undefined> {
  const { version, ...controllers } = groups;
  const [group, name] = [groupOf(groups, places), groupName(places)];
  // Nobody waits for it: the process that enters the group would.
  void expectMove(groups);
  try {
    await removeGroup(group);
    for (const directory of group) await mkdir(directory);
    const settings = version === 2 ? unifiedSettings(limits) : separateSettings(limits);
    for (const [controller, file, value] of settings) {
      const above = controllers[controller];
      if (above !== undefined) await set(path.join(above, name, file), value);
    }
    return group;
  } catch (error) {
    if (errnoOf(error) === undefined) throw error;
    await removeGroup(group);
    return undefined;
  }
}

/**
 * Before a process moves to another group the kernel waits for all processors, a hundredth of a second, unless one has moved
 * a moment ago. Has it do so now, by moving this process to where it is.
 */
export async function expectMove({ version, memory }: ControlGroups): Promise<void> {
  try {
    const lines = (await readFile('/proc/self/cgroup', 'latin1')).split('\n').map((line) => line.split(':'));
    const own = lines.find(([id, controllers = '']) =>
      version === 2 ? id === '0' : controllers.split(',').includes('memory'),
    )?.[2];
    if (own === undefined) return;
    await writeFile(path.join(path.dirname(memory), own, 'cgroup.procs'), `${ownPid()}`, { flag: 'r+' });
  } catch (error) {
    if (errnoOf(error) === undefined) throw error;
  }
}

/** Kernels without swap accounting lack the files for it. */
async function set(file: string, value: string): Promise<void> {
  try {
    await writeFile(file, value, { flag: 'r+' });
  } catch (error) {
    if (errnoOf(error) !== 'ENOENT' || !/swap|memsw/.test(file)) throw error;
  }
}

type Setting = readonly [controller: 'memory' | 'pids' | 'cpu', file: string, value: string];

const PERIOD_US = 100_000;

function unifiedSettings({ memory, pids, cpus }: Limits): readonly Setting[] {
  return [
    ...(memory === 0 ? [] : setting('memory', { 'memory.max': memory, 'memory.swap.max': 0 })),
    ...(pids === 0 ? [] : setting('pids', { 'pids.max': pids })),
    ...(cpus === 0 ? [] : setting('cpu', { 'cpu.max': `${Math.round(cpus * PERIOD_US)} ${PERIOD_US}` })),
  ];
}

function separateSettings({ memory, pids, cpus }: Limits): readonly Setting[] {
  const quota = { 'cpu.cfs_period_us': PERIOD_US, 'cpu.cfs_quota_us': Math.round(cpus * PERIOD_US) };
  return [
    // In this order: memory with swap may not be less than memory.
    ...(memory === 0
      ? []
      : setting('memory', { 'memory.limit_in_bytes': memory, 'memory.memsw.limit_in_bytes': memory })),
    ...(pids === 0 ? [] : setting('pids', { 'pids.max': pids })),
    ...(cpus === 0 ? [] : setting('cpu', quota)),
  ];
}

function setting(controller: Setting[0], files: Readonly<Record<string, string | number>>): Setting[] {
  return Object.entries(files).map(([file, value]) => [controller, file, `${value}`]);
}

/** One for each workload of each installation on this machine. */
function groupName({ directory }: Pick<WorkloadPlaces, 'directory'>): string {
  const hash = createHash('sha256').update(directory).digest('hex').slice(0, 12);
  return `${path.basename(directory)}-${hash}`;
}

/** The command in a group from its first moment: a shell enters and becomes it. */
export function inGroup(group: ControlGroup, command: readonly string[]): readonly string[] {
  const files = group.map((directory) => path.join(directory, 'cgroup.procs'));
  return ['/bin/sh', '-c', ENTER, 'skep', `${files.length}`, ...files, ...command];
}

const ENTER = `
left=$1; shift
while [ "$left" -gt 0 ]; do echo $$ >"$1" || exit 1; shift; left=$((left - 1)); done
exec "$@"`;

/** True when the kernel has ended something of the group because its memory was used up. */
export async function hasUsedUpMemory([memory = '']: ControlGroup): Promise<boolean> {
  for (const file of ['memory.events', 'memory.oom_control']) {
    const text = await readFile(path.join(memory, file), 'utf8').catch(() => '');
    if (Number(/^oom_kill (\d+)$/m.exec(text)?.[1] ?? 0) > 0) return true;
  }
  return false;
}

const BUSY_MS = 500;

/** Idempotent. Of a workload whose last processes the kernel is still clearing up it waits for them a moment. */
export async function removeGroup(group: ControlGroup): Promise<void> {
  for (const directory of group) {
    for (let waited = 0; waited < BUSY_MS; waited += 10) {
      const failed = await rmdir(directory).then(() => undefined, errnoOf);
      if (failed !== 'EBUSY') break;
      await pause(10);
    }
  }
}
