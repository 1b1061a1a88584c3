import { randomBytes } from 'node:crypto';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import type { RuntimeReference } from '../run-config/run-config.ts';
import type { RuntimeEnvironment } from '../runtime/environment.ts';
import type { Runtime, RuntimeInfo } from '../runtime/runtime.ts';
import { ownerOf } from '../supervisor/workload-spec.ts';
import type { Context } from './context.ts';

export interface OpenedRuntime {
  readonly runtime: Runtime;
  readonly info: RuntimeInfo;
}

export interface OpenRuntimeOptions {
  /** The runtime a saved workload belongs to. */
  readonly reference?: RuntimeReference | undefined;
  readonly signal?: AbortSignal;
}

const neverAborts = new AbortController().signal;
const PROBE_MS = 10_000;
/** What would lead away from the engine a workload was made on. */
const REDIRECTIONS = ['SKEP_RUNTIME', 'SKEP_PODMAN_SOCKET', 'SKEP_DOCKER_SOCKET', 'SKEP_COLIMA_SOCKET'];

/**
 * The runtime a workload belongs to, or the best one there is. Connects now, so commands that need none never call it.
 * Fails with `runtime/*` when it does not answer, with `workload/other-engine` when another one answers by now.
 */
export async function openRuntime(
  context: Context,
  { reference, signal = neverAborts }: OpenRuntimeOptions = {},
): Promise<OpenedRuntime> {
  return identify(await connectRuntime(context, reference), { reference, signal });
}

/** Asks a connected runtime who it is; the errors are those of `openRuntime`. */
export async function identify(
  runtime: Runtime,
  { reference, signal = neverAborts }: OpenRuntimeOptions,
): Promise<OpenedRuntime> {
  const info = await runtime.probe(AbortSignal.any([signal, AbortSignal.timeout(PROBE_MS)]));
  if (reference && info.id !== reference.id) {
    throw new SkepError('workload/other-engine', {
      message: `the workload belongs to another ${reference.kind} engine than the one at ${info.endpoint}`,
    });
  }
  return { runtime, info };
}

/** As `openRuntime`, for who knows already that the one a workload belongs to is still there: its identity is not asked for. */
export async function connectRuntime(
  context: Context,
  reference: RuntimeReference | undefined,
): Promise<Runtime> {
  if (context.connectRuntime) return context.connectRuntime(reference);
  const { detectRuntime } = await import('../runtime/detect.ts');
  return detectRuntime(runtimeEnvironment(context, reference), reference?.kind);
}

function runtimeEnvironment(context: Context, reference: RuntimeReference | undefined): RuntimeEnvironment {
  const { env, home, platform, places, program } = context;
  return {
    env: reference?.kind === 'docker' ? pointedAt(env, reference.endpoint) : env,
    home,
    platform,
    execPath: program.node,
    dataDir: places.dataDir,
    cacheDir: places.cacheDir,
    owner: ownerOf(places.stateDir),
    randomId: () => randomBytes(8).toString('hex'),
  };
}

function pointedAt(env: Context['env'], endpoint: string): Context['env'] {
  const kept = Object.entries(env).filter(([name]) => !REDIRECTIONS.includes(name));
  return { ...Object.fromEntries(kept), DOCKER_HOST: endpoint };
}
