import { readFileSync } from 'node:fs';
import { release } from 'node:os';
import type { Limits } from '../../permissions/limits.ts';
import type { ConfinedUser } from '../../permissions/confined-user-name.ts';
import { isUnusedUser } from '../../permissions/confined-user.ts';
import type { ControlGroups } from './control-groups.ts';

/** As many as containers get. */
const OPEN_FILES = 65_536;

/** V8 makes 512 MiB writable for code that it may never compile. */
const RESERVED_BYTES = 1024 ** 3;

export interface Held {
  readonly limits: Limits;
  /** A control group holds its memory and processes. */
  readonly byGroup: boolean;
  /** The kernel counts the processes of this sandbox alone; see `countsAlone`. */
  readonly countsAlone: boolean;
}

/**
 * Options of prlimit(1) that the first program inside is started with: no file with its memory when it crashes, bounded
 * files, and without a control group its processes and what each of them may hold in memory. That is a bound of its data
 * (RLIMIT_DATA), because V8 reserves far more addresses than it uses; more than the limit, because not all of it is used,
 * and the sum is the guard's to watch.
 */
export function limitOptions({ limits: { memory, pids, disk }, byGroup, countsAlone }: Held): string[] {
  const { soft, hard } = openFiles();
  return [
    '--core=0',
    `--nofile=${Math.min(soft, OPEN_FILES)}:${Math.min(hard, OPEN_FILES)}`,
    ...(disk === 0 ? [] : [`--fsize=${disk}`]),
    ...(byGroup || memory === 0 ? [] : [`--data=${2 * memory + RESERVED_BYTES}`]),
    ...(byGroup || pids === 0 || !countsAlone ? [] : [`--nproc=${pids}`]),
  ];
}

/** What this process may open, which nothing that it starts can raise. */
function openFiles(limits = readFileSync('/proc/self/limits', 'latin1')): { soft: number; hard: number } {
  const [soft, hard] = (/^Max open files +(\S+) +(\S+)/m.exec(limits)?.slice(1) ?? []).map((text) =>
    text === 'unlimited' ? OPEN_FILES : Number(text),
  );
  return { soft: soft ?? 1024, hard: hard ?? 1024 };
}

/** Since this release a user namespace has a count of its own (RLIMIT_NPROC in setrlimit(2)). */
const COUNTS_PER_NAMESPACE = { major: 5, minor: 14 };

/**
 * True when a limit on processes would count those of this sandbox and no others: in a user namespace of its own, or as a
 * user that nothing else on this machine is.
 */
export function countsAlone(asRoot: boolean, user: ConfinedUser, kernel = release()): boolean {
  if (asRoot) return isUnusedUser(user);
  const [major = 0, minor = 0] = kernel.split('.').map((part) => Number.parseInt(part, 10));
  const { major: since, minor: at } = COUNTS_PER_NAMESPACE;
  return major > since || (major === since && minor >= at);
}

interface Means {
  readonly groups?: ControlGroups | undefined;
  readonly prlimit?: string | undefined;
}

/** What holds the limits of sandboxed servers here, for people. */
export function heldBy({ groups, prlimit }: Means): string {
  if (groups !== undefined) return `control groups (version ${groups.version}), and the supervisor for disk`;
  const each = prlimit === undefined ? '' : 'limits of each process, and ';
  return `${each}the supervisor, which looks at what they use together`;
}

/** What of the limits nothing holds here, a phrase each. */
export function notHeld({ groups, prlimit }: Means, limits: Limits | undefined): readonly string[] {
  if (limits === undefined) return [];
  return [
    ...(limits.cpus > 0 && groups?.cpu === undefined
      ? ['its processors are not limited, because this user may make no control groups']
      : []),
    ...(prlimit === undefined
      ? ['nothing but the supervisor bounds its processes and files, because prlimit (util-linux) is missing']
      : []),
  ];
}
