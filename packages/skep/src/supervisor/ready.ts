import { SkepError } from '@skep/core/errors/skep-error.ts';
import type { Clock } from '@skep/core/time/clock.ts';
import { exceededText } from '../permissions/limits.ts';
import type { Runtime } from '../runtime/runtime.ts';
import type { Tell } from './protocol.ts';

const SHOWN_LINES = 10;

/** Before a server that could not be asked is asked again. */
const AGAIN_MS = 1_000;

export interface ReadyOptions<Greeted = unknown> {
  readonly runtime: Runtime;
  readonly name: string;
  readonly clock: Clock;
  readonly tell: Tell;
  readonly signal: AbortSignal;
  /** Resolves when the server has answered `initialize`, whatever it answered. */
  readonly ask: (signal: AbortSignal) => Promise<Greeted>;
  /** Where it is asked, for people. */
  readonly where: string;
  /** How long it may take, milliseconds. */
  readonly patienceMs: number;
}

/**
 * Waits until the server has answered. Fails, after telling the server's last lines, with `run/crashed-at-start` when it
 * ends before that, and with `run/no-answer` when it does not answer in time.
 */
export async function untilReady<Greeted>(options: ReadyOptions<Greeted>): Promise<Greeted> {
  const { runtime, name, clock, signal, patienceMs, where } = options;
  const race = new AbortController();
  const both = AbortSignal.any([signal, race.signal]);
  try {
    const outcome = await Promise.race([
      untilAnswered(options, both).then((greeted) => ({ is: 'answered', greeted }) as const),
      runtime.wait(name, both).then((exitCode) => ({ is: 'ended', exitCode }) as const),
      // One that answers while its lines are read has answered.
      clock
        .sleep(patienceMs, both)
        .then(async () => ({ is: 'late', lines: await lastLines(runtime, name) }) as const),
    ]);
    if (outcome.is === 'answered') return outcome.greeted;
    if (outcome.is === 'ended') throw await crashedAtStart(options, outcome.exitCode);
    for (const line of outcome.lines) options.tell({ kind: 'output', line });
    throw new SkepError('run/no-answer', {
      message: `the server of "${name}" did not answer an MCP initialize ${where} within ${patienceMs / 1000} s`,
      detail: { name },
    });
  } finally {
    race.abort();
  }
}

/** A server that cannot be asked now has ended, or may be asked a moment later: the others of the race say which. */
async function untilAnswered<Greeted>(
  { ask, clock }: ReadyOptions<Greeted>,
  signal: AbortSignal,
): Promise<Greeted> {
  for (;;) {
    try {
      return await ask(signal);
    } catch {
      if (signal.aborted) throw new SkepError('run/cancelled', { cause: signal.reason });
    }
    await clock.sleep(AGAIN_MS, signal);
  }
}

export type Failing = Pick<ReadyOptions, 'runtime' | 'name' | 'tell'>;

/** The error for a server that ended before it could be used, after telling what it wrote last. */
export async function crashedAtStart(failing: Failing, exitCode: number): Promise<SkepError> {
  const { name } = failing;
  await tellLastLines(failing);
  const exceeded = (await failing.runtime.inspect(name))?.exceeded;
  if (exceeded !== undefined) {
    return new SkepError('run/crashed-at-start', {
      message: `the server of "${name}" stopped right after it was started: ${exceededText(exceeded)}`,
      detail: { name, exitCode },
    });
  }
  return new SkepError('run/crashed-at-start', {
    message: `the server of "${name}" stopped right after it was started, with exit status ${exitCode}`,
    detail: { name, exitCode },
  });
}

async function tellLastLines({ runtime, name, tell }: Failing): Promise<void> {
  for (const line of await lastLines(runtime, name)) tell({ kind: 'output', line });
}

const MAX_BYTES = 64 * 1024;

interface Lines {
  readonly count?: number;
  /** What a stdio server writes to stdout is the protocol. */
  readonly stderrOnly?: boolean;
}

/** The last lines a workload wrote, stderr and stdout together; what cannot be read is left out. */
export async function lastLines(
  runtime: Runtime,
  name: string,
  { count = SHOWN_LINES, stderrOnly = false }: Lines = {},
): Promise<readonly string[]> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of runtime.logs(name, {
    follow: false,
    tail: count,
    signal: AbortSignal.timeout(5_000),
  })) {
    if (stderrOnly && chunk.stream !== 'stderr') continue;
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
