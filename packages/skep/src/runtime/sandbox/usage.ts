import { execFile } from 'node:child_process';
import { readdirSync, readFileSync, readlinkSync, statfsSync, statSync } from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import { errnoOf } from '@skep/core/files/errno.ts';

const run = promisify(execFile);

/** What the processes of one sandbox use together. */
export interface Usage {
  /** Bytes of memory that nothing but these processes holds: anonymous, shared, and files in memory. */
  readonly memory: number;
  /** Processes with their threads. */
  readonly pids: number;
}

const TMPFS_MAGIC = 0x0102_1994;
/** Mounts in memory that the sandbox makes. */
const IN_MEMORY = ['tmp', 'dev/shm', 'home/skep'];

/**
 * What the sandbox uses whose first process is `init`, read in its own process table. Pages that processes share are counted
 * once, but only when it would be more than `enough` otherwise, because that takes the kernel time. Undefined when it has
 * ended. Without waiting, because the table changes while it is read.
 */
export function usageOf(init: number, enough: number): Usage | undefined {
  const root = rootOf(init);
  const all = root === undefined ? undefined : processesOf(root);
  if (root === undefined || all === undefined) return undefined;
  let [anonymous, shared, pids] = [0, 0, 0];
  const holders: string[] = [];
  for (const one of all) {
    const { place, status } = memoryOf(one);
    anonymous += bytesIn(status, 'RssAnon') + bytesIn(status, 'VmSwap');
    shared += bytesIn(status, 'RssShmem');
    pids += Number(/^Threads:\t(\d+)$/m.exec(status)?.[1] ?? 0);
    if (place !== undefined) holders.push(place);
  }
  const files = IN_MEMORY.reduce((sum, name) => sum + inTmpfs(path.join(root, name)), 0);
  const unmapped = machineShared() > enough / 2 ? openBytes(all, (link) => link.startsWith('/memfd:')) : 0;
  const memory = anonymous + Math.max(shared, files + unmapped);
  if (memory <= enough) return { memory, pids };
  const exact = holders.map((one) => textOf(path.join(one, 'smaps_rollup')));
  // A kernel that does not say so counts shared pages for each process.
  if (exact.some((text) => text === undefined || !text.includes('Pss_Anon:'))) return { memory, pids };
  const sum = (key: string): number => exact.reduce((bytes, text) => bytes + bytesIn(text ?? '', key), 0);
  const own = sum('Pss_Anon') + sum('SwapPss');
  return { memory: own + Math.max(sum('Pss_Shmem'), files + unmapped), pids };
}

/**
 * The root directory of a sandbox, through whichever program in it can be looked into: what a program calls itself, and
 * whether its first thread has ended, is the server's to say.
 */
function rootOf(init: number): string | undefined {
  const born = startTime(`/proc/${init}`);
  const children = textOf(`/proc/${init}/task/${init}/children`)?.trim().split(' ') ?? [];
  for (const child of born === undefined ? [] : children) {
    for (const thread of numbersIn(`/proc/${child}/task`) ?? []) {
      const root = `/proc/${child}/task/${thread}/root`;
      // While the sandbox is set up it is still that of the machine.
      if (startTime(path.join(root, 'proc/1')) === born) return root;
    }
  }
  return undefined;
}

function startTime(place: string): string | undefined {
  const stat = textOf(path.join(place, 'stat'));
  // The second field may contain anything, so fields count from its end.
  return stat?.slice(stat.lastIndexOf(')') + 2).split(' ')[19];
}

/** A directory of proc(5) for each process of a sandbox; undefined when it has ended. */
function processesOf(root: string): readonly string[] | undefined {
  return numbersIn(path.join(root, 'proc'))?.map((pid) => path.join(root, 'proc', pid));
}

const threadsOf = (one: string): readonly string[] =>
  (numbersIn(path.join(one, 'task')) ?? []).map((thread) => path.join(one, 'task', thread));

/** What proc_pid_status(5) says of a process, by a thread that goes on where the first one has ended, and who holds its memory. */
function memoryOf(one: string): { readonly place?: string; readonly status: string } {
  const own = textOf(path.join(one, 'status')) ?? '';
  if (own.includes('\nRssAnon:')) return { place: one, status: own };
  for (const place of threadsOf(one)) {
    const status = textOf(path.join(place, 'status'));
    if (status?.includes('\nRssAnon:') === true) return { place, status };
  }
  return { status: own };
}

function numbersIn(directory: string): string[] | undefined {
  try {
    return readdirSync(directory).filter((name) => /^\d+$/.test(name));
  } catch (error) {
    if (errnoOf(error) === undefined) throw error;
    return undefined;
  }
}

/** Undefined for what is gone, or may not be read. */
function textOf(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    if (errnoOf(error) === undefined) throw error;
    return undefined;
  }
}

/** A field in kilobytes, as the files of proc(5) have them. */
function bytesIn(text: string, key: string): number {
  return Number(new RegExp(`^${key}:\\s+(\\d+) kB$`, 'm').exec(text)?.[1] ?? 0) * 1024;
}

/** Nothing where the machine has that file system mounted too: then it is not the sandbox's, and others keep things there. */
function inTmpfs(directory: string): number {
  try {
    const { type, blocks, bfree, bsize } = statfsSync(directory);
    return type !== TMPFS_MAGIC || isOfMachine(statSync(directory).dev) ? 0 : (blocks - bfree) * bsize;
  } catch (error) {
    if (errnoOf(error) === undefined) throw error;
    return 0;
  }
}

/** By the numbers that proc_pid_mountinfo(5) has of it, which the kernel packs into one. */
function isOfMachine(dev: number): boolean {
  const [major, minor] = [(dev >>> 8) & 0xfff, (dev & 0xff) | ((dev >>> 12) & 0xfff00)];
  return textOf('/proc/self/mountinfo')?.includes(` ${major}:${minor} `) === true;
}

const machineShared = (): number => bytesIn(textOf('/proc/meminfo') ?? '', 'Shmem');

/** So many are looked at in less than a second. */
const MAX_DESCRIPTORS = 100_000;

/**
 * Bytes that files without a name take which these processes have open; each thread may have descriptors of its own. More
 * descriptors than can be looked at are more than any limit: something could be hidden behind them.
 */
function openBytes(
  processes: readonly string[],
  isWanted: (link: string) => boolean,
  devices?: ReadonlySet<number>,
): number {
  const seen = new Map<string, number>();
  let left = MAX_DESCRIPTORS;
  for (const thread of processes.flatMap(threadsOf)) {
    for (const number of numbersIn(path.join(thread, 'fd')) ?? []) {
      left -= 1;
      if (left < 0) return Infinity;
      try {
        const file = path.join(thread, 'fd', number);
        if (!isWanted(readlinkSync(file))) continue;
        const { dev, ino, blocks, nlink } = statSync(file);
        if (nlink === 0 && devices?.has(dev) !== false) seen.set(`${dev}:${ino}`, blocks * 512);
      } catch (error) {
        if (errnoOf(error) === undefined) throw error;
      }
    }
  }
  return [...seen.values()].reduce((sum, bytes) => sum + bytes, 0);
}

/**
 * Bytes on the disks of these directories in files that the sandbox has removed and goes on writing. What it maps or sends
 * from one process to another and has not open is not seen.
 */
export function removedBytes(init: number, directories: readonly string[]): number {
  const root = rootOf(init);
  const all = root === undefined ? undefined : processesOf(root);
  if (all === undefined) return 0;
  const devices = directories.flatMap((one) => statSync(one, { throwIfNoEntry: false })?.dev ?? []);
  return openBytes(all, (link) => link.endsWith(' (deleted)'), new Set(devices));
}

const DU_MS = 60_000;

/**
 * Bytes that lie on disk below these directories, their links not followed. By du(1): they may be nested deeper than a
 * path can be. What cannot be counted within a minute is more than any limit; what cannot be counted at all is nothing.
 */
export async function bytesBelow(directories: readonly string[]): Promise<number> {
  const counting = run('du', ['-skx', '--', ...directories], { timeout: DU_MS });
  const { stdout, late } = await counting.then(
    (done) => ({ ...done, late: false }),
    // Files that went away meanwhile make it complain, and it has counted the others.
    (error: { readonly stdout?: string; readonly killed?: boolean }) => ({
      stdout: error.stdout ?? '',
      late: error.killed === true,
    }),
  );
  if (late) return Infinity;
  return stdout.split('\n').reduce((sum, line) => sum + Number.parseInt(line || '0', 10), 0) * 1024;
}
