import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';

/** A process that cannot be mistaken for a later one with the same pid, not even after a reboot. */
export interface ProcessIdentity {
  readonly pid: number;
  /** When it started, in the notation of the system it runs on; only ever compared. */
  readonly started: string;
}

/** The identity of a running process; undefined when there is none, or only a zombie waiting to be reaped. */
export function identify(pid: number, platform: NodeJS.Platform): ProcessIdentity | undefined {
  if (!Number.isInteger(pid) || pid <= 0) return undefined;
  const started = platform === 'linux' ? startOnLinux(pid) : startElsewhere(pid);
  return started === undefined ? undefined : { pid, started };
}

/** True while exactly this process runs. */
export function isAlive(process: ProcessIdentity, platform: NodeJS.Platform): boolean {
  return identify(process.pid, platform)?.started === process.started;
}

/** Asks about each process once, for who looks at many workloads: one process hosts most of them. */
export function remembering(
  isAlive: (process: ProcessIdentity) => boolean,
): (process: ProcessIdentity) => boolean {
  const answers = new Map<string, boolean>();
  return (process) => {
    const key = `${process.pid} ${process.started}`;
    const answer = answers.get(key) ?? isAlive(process);
    answers.set(key, answer);
    return answer;
  };
}

/**
 * True when a process is not in all of these groups: it began before its user was added to one. What cannot be known is
 * false. Supplementary groups stand in proc_pid_status(5).
 */
export function lacksGroups(
  process: ProcessIdentity,
  groups: readonly number[],
  platform: NodeJS.Platform,
): boolean {
  if (platform !== 'linux' || !isAlive(process, platform)) return false;
  let status;
  try {
    status = readFileSync(`/proc/${process.pid}/status`, 'utf8');
  } catch {
    return false;
  }
  const lines = status.match(/^(?:Gid|Groups):.*$/gm) ?? [];
  const theirs = new Set(lines.flatMap((line) => line.split(/\s+/).slice(1).map(Number)));
  return groups.some((group) => !theirs.has(group));
}

/** Of the boot that this process runs in. */
let bootId: string | undefined;

/**
 * The boot, and field 22 of proc_pid_stat(5), in ticks since that boot: services start at about the same tick with about
 * the same pid each time. The name in field 2 may hold spaces and parentheses.
 */
function startOnLinux(pid: number): string | undefined {
  let stat;
  try {
    stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  } catch {
    // ENOENT and ESRCH both mean that there is no such process.
    return undefined;
  }
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  const [state, ticks] = [fields[0], fields[19]];
  if (state === 'Z' || state === 'X' || ticks === undefined) return undefined;
  bootId ??= readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
  return `${bootId} ${ticks}`;
}

function startElsewhere(pid: number): string | undefined {
  try {
    const line = execFileSync('ps', ['-o', 'lstart=', '-p', String(pid)], {
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
      // The same words whoever asks: the supervisor may have another language or zone than a command.
      env: { PATH: '/usr/bin:/bin', LC_ALL: 'C', TZ: 'UTC' },
    });
    return line.trim() === '' ? undefined : line.trim();
  } catch {
    // ps exits non-zero when the process does not exist.
    return undefined;
  }
}
