import { SkepError } from '@skep/core/errors/skep-error.ts';
import { member } from '@skep/proxy/message/json-rpc.ts';
import { printable } from '@skep/core/terminal/printable.ts';
import type { Clock } from '@skep/core/time/clock.ts';
import type { Runtime } from '../runtime/runtime.ts';
import type { Readiness, Tell } from './protocol.ts';

const SHOWN_LINES = 10;
const SHOWN_CHARS = 80;

/**
 * How long a server may take to answer, milliseconds: one that has written nothing at all is hardly starting, one that
 * writes may be loading something large.
 */
const PATIENCE = { mute: 10_000, writing: 60_000 } as const;

/** Before a server that could not be asked is asked again. */
const AGAIN_MS = 1_000;

export interface ReadyOptions {
  readonly runtime: Runtime;
  readonly name: string;
  readonly clock: Clock;
  readonly tell: Tell;
  readonly signal: AbortSignal;
  /** Resolves with the server's `serverInfo`, or anything else, when the server has answered `initialize`. */
  readonly ask: (signal: AbortSignal) => Promise<unknown>;
  /** A server that takes long is no error; its clients are told by the proxy. */
  readonly mayBeSilent: boolean;
}

/**
 * Waits until the server has answered. Fails, after telling the server's last lines, with `run/crashed-at-start` when it
 * ends before that, and with `run/no-answer` when it does not answer in time and may not be silent.
 */
export async function untilReady(options: ReadyOptions): Promise<Readiness> {
  const { runtime, name, signal } = options;
  const race = new AbortController();
  const both = AbortSignal.any([signal, race.signal]);
  try {
    const outcome = await Promise.race([
      untilAnswered(options, both),
      runtime.wait(name, both).then((exitCode) => ({ is: 'ended', exitCode }) as const),
      patience(options, both).then((ms) => ({ is: 'late', ms }) as const),
    ]);
    if (outcome.is === 'ended') throw await crashedAtStart(options, outcome.exitCode);
    if (outcome.is !== 'late') return outcome;
    if (options.mayBeSilent) return { is: 'silent' };
    await tellLastLines(options);
    throw new SkepError('run/no-answer', {
      message: `the server of "${name}" did not answer an MCP initialize on its standard input within ${outcome.ms / 1000} s`,
      detail: { name },
    });
  } finally {
    race.abort();
  }
}

function answered(serverInfo: unknown): Readiness {
  const [name, version] = ['name', 'version'].map((key) => member(serverInfo, key));
  if (typeof name !== 'string') return { is: 'answered' };
  const text = typeof version === 'string' ? `${name} ${version}` : name;
  return { is: 'answered', server: printable(text).slice(0, SHOWN_CHARS) };
}

/** A server that cannot be asked now has ended, or may be asked a moment later: the others of the race say which. */
async function untilAnswered({ ask, clock }: ReadyOptions, signal: AbortSignal): Promise<Readiness> {
  for (;;) {
    try {
      return answered(await ask(signal));
    } catch {
      if (signal.aborted) throw new SkepError('run/cancelled', { cause: signal.reason });
    }
    await clock.sleep(AGAIN_MS, signal);
  }
}

/** Resolves when the time is up, with how long that was. */
async function patience(
  { runtime, name, clock, mayBeSilent }: ReadyOptions,
  signal: AbortSignal,
): Promise<number> {
  const { mute, writing } = PATIENCE;
  await clock.sleep(mute, signal);
  if (!mayBeSilent && (await lastLines(runtime, name, 1)).length === 0) return mute;
  await clock.sleep(writing - mute, signal);
  return writing;
}

export type Failing = Pick<ReadyOptions, 'runtime' | 'name' | 'tell'>;

/** The error for a server that ended before it could be used, after telling what it wrote last. */
export async function crashedAtStart(failing: Failing, exitCode: number): Promise<SkepError> {
  const { name } = failing;
  await tellLastLines(failing);
  return new SkepError('run/crashed-at-start', {
    message: `the server of "${name}" stopped right after it was started, with exit status ${exitCode}`,
    detail: { name, exitCode },
  });
}

async function tellLastLines({ runtime, name, tell }: Failing): Promise<void> {
  for (const line of await lastLines(runtime, name, SHOWN_LINES)) tell({ kind: 'output', line });
}

const MAX_BYTES = 64 * 1024;

/** The last lines a workload wrote, stderr and stdout together; what cannot be read is left out. */
async function lastLines(runtime: Runtime, name: string, count: number): Promise<readonly string[]> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of runtime.logs(name, {
    follow: false,
    tail: count,
    signal: AbortSignal.timeout(5_000),
  })) {
    chunks.push(chunk.bytes);
    bytes += chunk.bytes.length;
    if (bytes > MAX_BYTES) break;
  }
  const text = Buffer.concat(chunks).toString('utf8');
  return text
    .split('\n')
    .map((line) => line.trimEnd())
    .filter((line) => line !== '')
    .slice(-count);
}
