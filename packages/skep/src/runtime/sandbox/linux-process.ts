import { readdirSync, readlinkSync } from 'node:fs';
import { readFile, realpath } from 'node:fs/promises';
import { errnoOf, ifThere } from '@skep/core/files/errno.ts';

/** One process, told apart from a later one with the same number by its start time. */
export interface ProcessIdentity {
  readonly pid: number;
  /** Clock ticks since boot (`starttime` of proc_pid_stat(5)). */
  readonly startTime: string;
}

/** Of this program. Importing `node:process` would cost each start 5 ms: Node asks for each of its members then. */
export const ownPid = (): number => process.pid;

/** The identity of a process that runs now; undefined when there is none or only a zombie is left. */
export async function identify(pid: number): Promise<ProcessIdentity | undefined> {
  const stat = await procFile(`/proc/${pid}/stat`);
  // The second field is the program's name in parentheses and may contain anything, so fields count from the last one.
  const fields = stat?.slice(stat.lastIndexOf(')') + 2).split(' ') ?? [];
  const [state, startTime] = [fields[0], fields[19]];
  return startTime === undefined || state === 'Z' || state === 'X' ? undefined : { pid, startTime };
}

export async function isRunning(identity: ProcessIdentity): Promise<boolean> {
  return (await identify(identity.pid))?.startTime === identity.startTime;
}

/**
 * The program that runs inside a sandbox, seen from its first process: the first child that is no bubblewrap any more.
 * While the sandbox is still being set up its children are, and a signal to one of those would break the set-up.
 */
export async function programInside(init: number): Promise<number | undefined> {
  for (const child of await childrenOf(init)) {
    const name = await procFile(`/proc/${child}/comm`);
    if (name !== undefined && name.trim() !== 'bwrap') return child;
  }
  return undefined;
}

/**
 * Processes whose error output goes into a file below `directory`. Everything in a sandbox begins with its log there, so
 * this finds it whatever became of our own records.
 */
export async function processesLoggingBelow(directory: string): Promise<readonly number[]> {
  return processesLogging(directory, (output, real) => output.startsWith(`${real}/`));
}

async function processesLogging(
  place: string,
  isThere: (output: string, real: string) => boolean,
): Promise<readonly number[]> {
  const real = await ifThere(realpath(place));
  if (real === undefined) return [];
  // The kernel answers from memory: at once it takes a tenth of the time.
  const all = readdirSync('/proc').filter((name) => /^\d+$/.test(name));
  return all.filter((pid) => isThere(errorOutputOf(pid), real)).map(Number);
}

function errorOutputOf(pid: string): string {
  try {
    return readlinkSync(`/proc/${pid}/fd/2`);
  } catch {
    // It ended while we looked, or belongs to another user.
    return '';
  }
}

/** The first process of the sandbox that logs to that file: number 1 in its own process namespace. */
export async function firstInside(log: string): Promise<ProcessIdentity | undefined> {
  for (const pid of await processesLogging(log, (output, real) => output === real)) {
    const status = await procFile(`/proc/${pid}/status`);
    if (/^NSpid:(?:\t\d+)+\t1$/m.test(status ?? '')) return identify(pid);
  }
  return undefined;
}

/** Children of a process with one thread, in the order they were started. */
async function childrenOf(pid: number): Promise<number[]> {
  const text = await procFile(`/proc/${pid}/task/${pid}/children`);
  return (text ?? '')
    .split(' ')
    .filter((one) => one.trim() !== '')
    .map(Number);
}

/** Changes with every boot, so a saved process number is not believed after one. */
export async function bootId(): Promise<string> {
  return (await readFile('/proc/sys/kernel/random/boot_id', 'utf8')).trim();
}

/** False when the process is gone already. */
export function sendSignal(pid: number, signal: NodeJS.Signals): boolean {
  try {
    return process.kill(pid, signal);
  } catch (error) {
    if (errnoOf(error) === 'ESRCH') return false;
    throw error;
  }
}

const procFile = (file: string): Promise<string | undefined> => ifThere(readFile(file, 'utf8'), 'ESRCH');
