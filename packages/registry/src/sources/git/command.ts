import { type ChildProcess, spawn } from 'node:child_process';
import { addAbortListener } from 'node:events';
import { platform } from 'node:os';
import { kill } from 'node:process';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { errnoOf } from '@skep/core/files/errno.ts';
import { tooLarge } from './folder-size-limit.ts';

export interface GitCommand {
  /** The program; a name is looked up on the PATH of `env`. */
  readonly program: string;
  readonly args: readonly string[];
  /** All of the environment; nothing is inherited. */
  readonly env: Readonly<Record<string, string>>;
  readonly folder: string;
  /** What it fetches from, for messages. */
  readonly url: string;
  /** Bytes of stdout that are taken. */
  readonly maxBytes: number;
  /** Bytes of memory that each of git's processes may take: what the server sends decides how much git wants. */
  readonly maxMemory: number;
  readonly signal: AbortSignal;
}

export interface GitResult {
  /** Exit status; null when a signal ended it. */
  readonly status: number | null;
  readonly stdout: Buffer;
  /** The last part of it. */
  readonly stderr: string;
}

const KEPT_STDERR = 16_384;
/** Where the system has no such limit, git runs without it. `"$@"` is the command as it was given, never read as a script. */
const LIMITED = 'ulimit -d "$0" 2>/dev/null; exec "$@"';
/** POSIX shells about a command that is not there, or cannot be run. */
const NOT_FOUND: ReadonlySet<number | null> = new Set([126, 127]);

/**
 * Runs git once, in a process group of its own, and waits until it and all its helpers have let go of their output: the
 * folder can be removed afterwards. Abort ends the whole group and rejects with the signal's reason; more output than
 * allowed does so with `source/too-large`, a missing program with `source/git-missing`.
 */
export async function runGit(command: GitCommand): Promise<GitResult> {
  const { signal } = command;
  signal.throwIfAborted();
  const grouped = platform() !== 'win32';
  const given = [command.program, ...command.args] as const;
  const kilobytes = String(Math.ceil(command.maxMemory / 1024));
  const [program, ...args] = grouped ? (['/bin/sh', '-c', LIMITED, kilobytes, ...given] as const) : given;
  const child = spawn(program, args, {
    cwd: command.folder,
    env: { ...command.env },
    detached: grouped,
    stdio: ['ignore', 'pipe', 'pipe'],
    windowsHide: true,
  });
  const end = (): void => endProcesses(child, grouped);
  using _ = addAbortListener(signal, end);
  const result = await outcome(child, command, end);
  signal.throwIfAborted();
  return result;
}

type Piped = ChildProcess & Pick<ReturnType<typeof spawn>, 'stdout' | 'stderr'>;

function outcome(child: Piped, { maxBytes, url }: GitCommand, end: () => void): Promise<GitResult> {
  const chunks: Buffer[] = [];
  let taken = 0;
  let stderr = Buffer.alloc(0);
  child.stdout?.on('data', (chunk: Buffer) => {
    taken += chunk.byteLength;
    if (taken > maxBytes) end();
    else chunks.push(chunk);
  });
  child.stderr?.on('data', (chunk: Buffer) => {
    stderr = Buffer.concat([stderr, chunk]).subarray(-KEPT_STDERR);
  });
  return new Promise((resolve, reject) => {
    child.once('error', (cause) => reject(notStarted(cause)));
    child.once('close', (status) => {
      if (taken > maxBytes) reject(tooLarge(url, maxBytes));
      else if (NOT_FOUND.has(status)) reject(new SkepError('source/git-missing'));
      else resolve({ status, stdout: Buffer.concat(chunks), stderr: stderr.toString('utf8') });
    });
  });
}

/** git leaves the network to helpers, which outlive it when only git itself is ended. */
function endProcesses(child: ChildProcess, grouped: boolean): void {
  if (child.pid === undefined) return;
  try {
    if (grouped) kill(-child.pid, 'SIGKILL');
    else child.kill('SIGKILL');
  } catch (error) {
    if (errnoOf(error) !== 'ESRCH') throw error;
  }
}

function notStarted(cause: Error): SkepError {
  const errno = errnoOf(cause);
  const message = `git cannot be started: ${errno ?? 'unexpected failure'}`;
  return new SkepError('source/git-missing', errno === 'ENOENT' ? { cause } : { message, cause });
}
