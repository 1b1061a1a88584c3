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
 * What the sandbox uses that `program` runs in, read in its own process table. Pages that processes share are counted
 * once, but only when it would be more than `enough` otherwise, because that takes the kernel time. Undefined when it has
 * ended. Without waiting, because the table changes while it is read.
 */
export function usageOf(program: number, enough: number): Usage | undefined {
  const root = `/proc/${program}/root`;
  const all = numbersIn(path.join(root, 'proc'));
  if (all === undefined) return undefined;
  const processes = all.map((pid) => path.join(root, 'proc', pid));
  let [anonymous, shared, pids] = [0, 0, 0];
  for (const one of processes) {
    const status = textOf(path.join(one, 'status')) ?? '';
    anonymous += bytesIn(status, 'RssAnon') + bytesIn(status, 'VmSwap');
    shared += bytesIn(status, 'RssShmem');
    pids += Number(/^Threads:\t(\d+)$/m.exec(status)?.[1] ?? 0);
  }
  const files = IN_MEMORY.reduce((sum, name) => sum + inTmpfs(path.join(root, name)), 0);
  const unmapped = machineShared() > enough / 2 ? memoryFiles(processes) : 0;
  const memory = anonymous + Math.max(shared, files + unmapped);
  if (memory <= enough) return { memory, pids };
  const exact = processes.map((one) => textOf(path.join(one, 'smaps_rollup')));
  // A kernel that does not say so counts shared pages for each process.
  if (exact.some((text) => text === undefined || !text.includes('Pss_Anon:'))) return { memory, pids };
  const sum = (key: string): number => exact.reduce((bytes, text) => bytes + bytesIn(text ?? '', key), 0);
  const own = sum('Pss_Anon') + sum('SwapPss');
  return { memory: own + Math.max(sum('Pss_Shmem'), files + unmapped), pids };
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

function inTmpfs(directory: string): number {
  try {
    const { type, blocks, bfree, bsize } = statfsSync(directory);
    return type === TMPFS_MAGIC ? (blocks - bfree) * bsize : 0;
  } catch (error) {
    if (errnoOf(error) === undefined) throw error;
    return 0;
  }
}

const machineShared = (): number => bytesIn(textOf('/proc/meminfo') ?? '', 'Shmem');

/** Bytes in files without a name (memfd_create(2)), which need not be mapped by anybody. */
function memoryFiles(processes: readonly string[]): number {
  const seen = new Map<string, number>();
  for (const one of processes) {
    for (const number of numbersIn(path.join(one, 'fd')) ?? []) {
      try {
        const file = path.join(one, 'fd', number);
        if (!readlinkSync(file).startsWith('/memfd:')) continue;
        const { dev, ino, blocks } = statSync(file);
        seen.set(`${dev}:${ino}`, blocks * 512);
      } catch (error) {
        if (errnoOf(error) === undefined) throw error;
      }
    }
  }
  return [...seen.values()].reduce((sum, bytes) => sum + bytes, 0);
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
