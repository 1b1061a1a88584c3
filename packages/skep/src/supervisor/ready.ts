import { SkepError } from '@skep/core/errors/skep-error.ts';
import type { Runtime } from '../runtime/runtime.ts';
import type { Clock } from './clock.ts';
import type { Tell } from './events.ts';
import { lastLines } from './last-lines.ts';

/** How long a stdio server must stay up to count as started: most crashes (missing key, bad argument) come sooner. */
export const SETTLE_MS = 1_500;
const SHOWN_LINES = 10;

/** Readiness of HTTP servers, spec run-workload §6.4 step 2. Milliseconds. */
const PROBE = {
  firstDelayMs: 100,
  longestDelayMs: 2_000,
  requestMs: 10_000,
  endSessionMs: 2_000,
  totalMs: 60_000,
} as const;

export interface ReadyOptions {
  readonly runtime: Runtime;
  readonly name: string;
  readonly clock: Clock;
  readonly tell: Tell;
  readonly signal: AbortSignal;
  /** The proxied endpoint of an HTTP server; absent for stdio, where staying up is the sign. */
  readonly endpoint?: string;
  readonly fetch: typeof fetch;
}

/**
 * Waits until the workload can be used. Fails with `run/crashed-at-start`, after telling the server's last lines, when
 * it ends before that. An HTTP server that never answers is not an error: some take minutes, and the proxy says so.
 */
export async function untilReady(options: ReadyOptions): Promise<'ready' | 'silent'> {
  const { runtime, name, signal } = options;
  const race = new AbortController();
  const both = AbortSignal.any([signal, race.signal]);
  try {
    const outcome = await Promise.race([
      runtime.wait(name, both).then((exitCode) => ({ exitCode })),
      options.endpoint === undefined
        ? options.clock.sleep(SETTLE_MS, both).then(() => 'ready' as const)
        : answers(options.endpoint, options, both),
    ]);
    if (typeof outcome === 'string') return outcome;
    throw await crashedAtStart(options, outcome.exitCode);
  } finally {
    race.abort();
  }
}

/** The error for a server that ended before it could be used, after telling what it wrote last. */
export async function crashedAtStart(
  { runtime, name, tell }: Pick<ReadyOptions, 'runtime' | 'name' | 'tell'>,
  exitCode: number,
): Promise<SkepError> {
  for (const line of await lastLines(runtime, name, SHOWN_LINES)) tell({ kind: 'output', line });
  return new SkepError('run/crashed-at-start', {
    message: `the server of "${name}" stopped right after it was started, with exit status ${String(exitCode)}`,
    detail: { name, exitCode },
  });
}

async function answers(
  endpoint: string,
  options: ReadyOptions,
  signal: AbortSignal,
): Promise<'ready' | 'silent'> {
  const started = options.clock.now().getTime();
  for (let delay: number = PROBE.firstDelayMs; ; delay = Math.min(delay * 2, PROBE.longestDelayMs)) {
    if (await probe(endpoint, options.fetch, signal)) return 'ready';
    if (options.clock.now().getTime() - started > PROBE.totalMs) return 'silent';
    await options.clock.sleep(delay, signal);
  }
}

async function probe(endpoint: string, fetch: ReadyOptions['fetch'], signal: AbortSignal): Promise<boolean> {
  try {
    const response = await fetch(endpoint, {
      method: 'POST',
      headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
      body: JSON.stringify({
        jsonrpc: '2.0',
        id: 'skep-init-check',
        method: 'initialize',
        params: {
          protocolVersion: '2025-11-25',
          capabilities: {},
          clientInfo: { name: 'skep', version: '1' },
        },
      }),
      signal: AbortSignal.any([signal, AbortSignal.timeout(PROBE.requestMs)]),
    });
    await response.body?.cancel();
    const session = response.headers.get('mcp-session-id');
    if (session !== null) await endSession(endpoint, session, { fetch, signal });
    return response.status === 200 || response.status === 401 || response.status === 403;
  } catch (error) {
    signal.throwIfAborted();
    // A refused connection, a reset or a slow answer: it is not ready yet.
    if (error instanceof Error) return false;
    throw error;
  }
}

/** The check should not leave a session behind in a server that counts them; one that does not answer keeps it. */
async function endSession(
  endpoint: string,
  session: string,
  { fetch, signal }: Pick<ReadyOptions, 'fetch' | 'signal'>,
): Promise<void> {
  try {
    const response = await fetch(endpoint, {
      method: 'DELETE',
      headers: { 'mcp-session-id': session },
      signal: AbortSignal.any([signal, AbortSignal.timeout(PROBE.endSessionMs)]),
    });
    await response.body?.cancel();
  } catch (error) {
    signal.throwIfAborted();
    if (!(error instanceof Error)) throw error;
  }
}
