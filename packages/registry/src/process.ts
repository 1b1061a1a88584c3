import { randomUUID } from 'node:crypto';
import { homedir, tmpdir } from 'node:os';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import type { Host, Output } from './host.ts';
import { runProgram } from './program.ts';
import { inputOf } from './stream-input.ts';
import { systemClock } from '@skep/core/time/clock.ts';

/** Runs this process's command line; the only place, with main.ts, that uses globals. `entry` is where its threads start. */
export function runProcess(entry: URL): Promise<number> {
  return runProgram(process.argv.slice(2), processHost(entry));
}

function processHost(entry: URL): Host {
  return {
    env: process.env,
    workingDirectory: process.cwd(),
    home: homedir(),
    temp: tmpdir(),
    platform: process.platform,
    arch: process.arch,
    nodeVersion: process.version,
    stdout: outputOf(process.stdout),
    stderr: outputOf(process.stderr),
    stdin: inputOf(process.stdin, process.stderr),
    entry,
    clock: systemClock,
    random: Math.random,
    randomId: randomUUID,
    onStop: (listener) => {
      process.on('SIGINT', listener).on('SIGTERM', listener);
      return () => process.off('SIGINT', listener).off('SIGTERM', listener);
    },
    onReload: (listener) => {
      process.on('SIGHUP', listener);
      return () => process.off('SIGHUP', listener);
    },
    exit: (code) => process.exit(code),
    releaseMemory,
  };
}

function outputOf(stream: NodeJS.WriteStream): Output {
  // Who writes hears of a failure by the callback. Without a listener, a reader that leaves would end the program.
  stream.on('error', () => undefined);
  return {
    write: (text, written) => stream.write(text, written),
    isTTY: stream.isTTY,
    columns: stream.columns,
  };
}

/** V8 keeps what it grew while loading until memory is short; asked as a last resort it gives it back at once. */
function releaseMemory(): void {
  setFlagsFromString('--expose-gc');
  const collect: NodeJS.GCFunction | undefined = runInNewContext('gc');
  collect?.({ type: 'major', execution: 'sync', flavor: 'last-resort' });
}
