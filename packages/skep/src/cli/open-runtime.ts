import { hasCode, SkepError } from '@skep/core/errors/skep-error.ts';
import type { WantedRuntime } from '../runtime/detect.ts';
import type { Runtime, RuntimeInfo } from '../runtime/runtime.ts';
import { ELSEWHERE, NEEDS_NO_IMAGES } from '../settings/identity.ts';
import type { Context } from './context.ts';
import { runtimeEnvironment } from './runtime-environment.ts';

export interface OpenRuntimeOptions {
  readonly reference?: WantedRuntime | undefined;
  readonly signal?: AbortSignal;
}

const neverAborts = new AbortController().signal;
const PROBE_MS = 10_000;

/**
 * The runtime that is wanted, or the best one there is. Connects now, so commands that need none never call it.
 * Fails with `runtime/*` when it does not answer, with `workload/other-engine` when another one answers by now.
 */
export async function openRuntime(context: Context, options: OpenRuntimeOptions = {}): Promise<Runtime> {
  const { runtime, info } = await beginRuntime(context, options);
  await info;
  return runtime;
}

/**
 * All that something of this user may be on: the best runtime there is, and the sandbox where that is there beside an engine.
 * Fails as `openRuntime`, where there is none.
 */
export async function openRuntimes(context: Context): Promise<readonly Runtime[]> {
  const { signal } = context;
  const best = await openRuntime(context, { signal });
  if (!best.runsImages) return [best];
  const sandbox = await openRuntime(context, { reference: { kind: NEEDS_NO_IMAGES }, signal }).catch(
    unlessNoSandbox,
  );
  return sandbox === undefined || sandbox.runsImages ? [best] : [best, sandbox];
}

function unlessNoSandbox(error: unknown): undefined {
  if (!hasCode(error, 'runtime/sandbox-unavailable')) throw error;
}

/** As `openRuntime`; who it is, is asked while the caller does something else. */
export async function beginRuntime(
  context: Context,
  { reference, signal = neverAborts }: OpenRuntimeOptions,
): Promise<{ readonly runtime: Runtime; readonly info: Promise<RuntimeInfo> }> {
  const runtime = await connectRuntime(context, reference);
  const info = identify(runtime, AbortSignal.any([signal, AbortSignal.timeout(PROBE_MS)]), reference);
  info.catch(() => {});
  return { runtime, info };
}

async function identify(
  runtime: Runtime,
  signal: AbortSignal,
  reference: WantedRuntime | undefined,
): Promise<RuntimeInfo> {
  const info = await runtime.probe(signal);
  if (reference?.id === undefined || info.id === reference.id) return info;
  throw new SkepError('workload/other-engine', {
    message: `the workload belongs to another ${reference.kind} engine than the one at ${info.endpoint}`,
  });
}

/** As `openRuntime` without asking who it is, where a workload's runtime is known to be there. */
export async function connectRuntime(
  context: Context,
  reference: WantedRuntime | undefined,
): Promise<Runtime> {
  if (reference?.kind === ELSEWHERE) return new (await import('../runtime/elsewhere.ts')).Elsewhere();
  if (context.connectRuntime) return context.connectRuntime(reference);
  const { detectRuntime } = await import('../runtime/detect.ts');
  return detectRuntime(runtimeEnvironment(context), reference);
}
