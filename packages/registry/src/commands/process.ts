import { randomUUID } from 'node:crypto';
import { homedir, tmpdir } from 'node:os';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { abortOnSignals, workingDirectory } from '@skep/core/command/host.ts';
import { runProgram } from '@skep/core/command/program.ts';
import { openTerminal, type Terminal } from '@skep/core/command/terminal.ts';
import { toTerminal } from '@skep/core/errors/to-terminal.ts';
import { errnoOf } from '@skep/core/files/errno.ts';
import { outputFailure } from '@skep/core/files/write-failure.ts';
import { systemClock } from '@skep/core/time/clock.ts';
import type { Host } from './command.ts';
import { REGISTRY } from './program.ts';
import { inputOf } from './stream-input.ts';

/** Runs this process's command line; the only place, with main.ts, that uses globals. `entry` is where its threads start. */
export async function runProcess(entry: URL): Promise<number> {
  const { argv, env, stdin, stderr } = process;
  const stdout = heardStream(process.stdout);
  // Who writes hears of a failure by a callback. Without a listener, a reader that leaves would end the program.
  for (const stream of [process.stdout, stderr]) stream.on('error', () => undefined);
  const terminal = openTerminal({ stdin, stdout, stderr, env });
  const open = (): Host => processHost(entry, terminal);
  const status = await runProgram(REGISTRY, argv.slice(2), { terminal, env, open });
  const failure = await stdout.failure();
  if (status !== 0 || failure === undefined) return status;
  const { text, exitCode } = toTerminal(outputFailure(failure), { color: terminal.colorErr, debug: false });
  terminal.err(text);
  return exitCode;
}

/** A stream that remembers why something could not be written, but that its reader has left. */
function heardStream(stream: NodeJS.WriteStream) {
  let failure: unknown;
  const write = (text: string, done?: () => void): boolean =>
    stream.write(text, (error) => {
      if (error && errnoOf(error) !== 'EPIPE') failure ??= error;
      done?.();
    });
  return {
    isTTY: stream.isTTY,
    columns: stream.columns,
    write: (text: string) => write(text),
    /** Once everything was written. */
    async failure(): Promise<unknown> {
      await new Promise<void>((resolve) => write('', resolve));
      return failure;
    },
  };
}

function processHost(entry: URL, terminal: Terminal): Host {
  let signal: AbortSignal | undefined;
  return {
    env: process.env,
    cwd: workingDirectory(process),
    home: homedir(),
    temp: tmpdir(),
    platform: process.platform,
    arch: process.arch,
    nodeVersion: process.version,
    terminal,
    stdout: process.stdout,
    stdin: inputOf(process.stdin, process.stderr),
    entry,
    clock: systemClock,
    random: Math.random,
    randomId: randomUUID,
    // A command that does not ask ends at the first signal.
    get signal() {
      return (signal ??= abortOnSignals(process, { SIGINT: 1, SIGTERM: 1 }));
    },
    onReload: (listener) => {
      process.on('SIGHUP', listener);
      return () => process.off('SIGHUP', listener);
    },
    releaseMemory,
  };
}

/** V8 keeps what it grew while loading until memory is short; asked as a last resort it gives it back at once. */
function releaseMemory(): void {
  setFlagsFromString('--expose-gc');
  const collect: NodeJS.GCFunction | undefined = runInNewContext('gc');
  collect?.({ type: 'major', execution: 'sync', flavor: 'last-resort' });
}
