import { randomInt } from 'node:crypto';
import { realpathSync } from 'node:fs';
import { isatty } from 'node:tty';
import { homedir, tmpdir, userInfo } from 'node:os';
import { abortOnSignals, workingDirectory } from '@skep/core/command/host.ts';
import { runProgram } from '@skep/core/command/program.ts';
import { openTerminal } from '@skep/core/command/terminal.ts';
import { toTerminal } from '@skep/core/errors/to-terminal.ts';
import { errnoOf } from '@skep/core/files/errno.ts';
import { homeDirectory, places } from '@skep/core/files/places.ts';
import { outputFailure } from '@skep/core/files/write-failure.ts';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import type { Ask, Confirm } from './cli/ask.ts';
import { systemClock } from '@skep/core/time/clock.ts';
import { identify, isAlive, lacksGroups } from './supervisor/process-identity.ts';
import type { Context } from './cli/context.ts';
import { SKEP } from './commands.ts';

/** Resolves to the exit status. The only place, with main.ts, that uses globals. */
export async function runCommandLine(
  argv: readonly string[],
  version: string,
  keepCompiled?: () => void,
): Promise<number> {
  const { stdout, stderr, env } = process;
  const terminal = openTerminal({ stdin, stdout, stderr, env });
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    // A pager that was closed is no reason to complain.
    if (error.code === 'EPIPE') process.exit(0);
    // A supervisor outlives it.
    if (process.listenerCount('uncaughtException') > 0) throw error;
    const { text, exitCode } = toTerminal(outputFailure(error), { color: terminal.colorErr, debug: false });
    terminal.err(text);
    process.exit(exitCode);
  });
  return runProgram(SKEP, argv, {
    terminal,
    env,
    open: () => openContext({ version, terminal, keepCompiled }),
  });
}

/** What shells expect of a process that a signal has ended. */
const STATUSES = { SIGINT: 130, SIGTERM: 143, SIGHUP: 129 };

/** Looking at process.stdin would load what reads it. */
const stdin = {
  get isTTY() {
    return isatty(0);
  },
};

interface Given extends Pick<Context, 'terminal'> {
  readonly version: string;
  readonly keepCompiled: (() => void) | undefined;
}

function openContext({ version, terminal, keepCompiled }: Given): Context {
  const { env, platform, execPath } = process;
  const uid = process.getuid?.();
  const user = userOfSystem();
  const home = homeDirectory([homedir(), user?.homedir], platform);
  const self = identify(process.pid, platform);
  if (!self) throw new SkepError('internal/bug', { message: 'this process cannot be identified' });
  return {
    env,
    home,
    cwd: workingDirectory(process),
    platform,
    uid,
    ...(user && { osUser: user.username }),
    self,
    places: places({ env, home, platform, temp: tmpdir() }),
    program: { node: execPath, entry: realpathSync.native(process.argv[1] ?? ''), version },
    terminal,
    ...(terminal.interactive ? { ask: askOnTerminal, confirm: confirmOnTerminal } : {}),
    streams: () => ({ input: process.stdin, output: process.stdout }),
    // Asked when it is wanted: it loads code for terminals and networks.
    get readInput() {
      return stdin.isTTY ? undefined : readStandardInput;
    },
    clock: systemClock,
    random: (min, max) => randomInt(min, max + 1),
    fetch,
    signal: abortOnSignals(process, STATUSES, new SkepError('run/cancelled')),
    isAlive: (other) => isAlive(other, platform),
    lacksGroups: (other) => uid !== 0 && lacksGroups(other, process.getgroups?.() ?? [], platform),
    end: endProcess,
    onFault(listener) {
      process.on('uncaughtException', listener);
      return () => process.off('uncaughtException', listener);
    },
    exit: (status) => process.exit(status),
    ...(keepCompiled && { keepCompiled }),
  };
}

function endProcess(pid: number, how: 'SIGTERM' | 'SIGKILL'): void {
  try {
    process.kill(pid, how);
  } catch (error) {
    // It ended meanwhile.
    if (errnoOf(error) !== 'ESRCH') throw error;
  }
}

/** A container may run under a number that has no name. */
function userOfSystem(): { readonly username: string; readonly homedir: string } | undefined {
  try {
    return userInfo();
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ERR_SYSTEM_ERROR') return undefined;
    throw error;
  }
}

async function readStandardInput(maxBytes: number): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of process.stdin) {
    chunks.push(chunk as Buffer);
    length += (chunk as Buffer).length;
    if (length > maxBytes) break;
  }
  return Buffer.concat(chunks).subarray(0, maxBytes);
}

const askOnTerminal: Ask = async (requirement) => {
  const { askValue } = await import('./cli/ask.ts');
  return askValue(requirement, process.stderr);
};

const confirmOnTerminal: Confirm = async (question) => {
  const { confirmAt } = await import('./cli/ask.ts');
  return confirmAt(process.stderr, question);
};
