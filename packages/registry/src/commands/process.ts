import { randomUUID } from 'node:crypto';
import { homedir, tmpdir } from 'node:os';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { abortOnSignals, workingDirectory } from '@skep/core/command/host.ts';
import { runProgram } from '@skep/core/command/program.ts';
import { openTerminal, type Terminal } from '@skep/core/command/terminal.ts';
import { systemClock } from '@skep/core/time/clock.ts';
import type { Host } from './command.ts';
import { REGISTRY } from './program.ts';
import { inputOf } from './stream-input.ts';

/** Runs this process's command line; the only place, with main.ts, that uses globals. `entry` is where its threads start. */
export function runProcess(entry: URL): Promise<number> {
  const { argv, env, stdin, stdout, stderr } = process;
  // Who writes hears of a failure by a callback. Without a listener, a reader that leaves would end the program.
  for (const stream of [stdout, stderr]) stream.on('error', () => undefined);
  const terminal = openTerminal({ stdin, stdout, stderr, env });
  return runProgram(REGISTRY, argv.slice(2), { terminal, env, open: () => processHost(entry, terminal) });
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
