import { access } from 'node:fs/promises';
import { hasCode, SkepError } from '@skep/core/errors/skep-error.ts';
import type { EngineClient } from './docker/client.ts';
import type { EngineSearch, Refusal } from './docker/find-engine.ts';
import type { Endpoint } from './docker/endpoint.ts';
import type { RuntimeEnvironment } from './environment.ts';
import type { Runtime, RuntimeKind } from './runtime.ts';
import type { Bubblewrap } from './sandbox/confine.ts';
import { userFile } from './user-file.ts';

/** How long an engine may take to answer a ping, in milliseconds. */
const PING_MS = 5000;

export type Selection =
  | { readonly kind: 'docker'; readonly endpoint: Endpoint }
  | { readonly kind: 'sandbox'; readonly bubblewrap: Bubblewrap };

export interface SelectionProbes extends EngineSearch {
  /** A working bubblewrap; rejects with `runtime/sandbox-unavailable`. */
  readonly sandbox: () => Promise<Bubblewrap>;
}

const NAMED_HINT = 'start the engine that the variable names, or unset the variable';

/**
 * Chooses what workloads run on: the kind that `SKEP_RUNTIME` (or `wanted`) names and nothing else, else an engine that
 * answers, else the sandbox. An engine named in a variable is never replaced by something else. Throws `runtime/unknown`, or `runtime/unavailable` with everything that was tried.
 */
export async function selectRuntime(probes: SelectionProbes, wanted?: RuntimeKind): Promise<Selection> {
  const forced = wanted ?? forcedKind(probes.env['SKEP_RUNTIME']);
  const refusals: Refusal[] = [];
  if (forced !== 'sandbox') {
    const { findEngine } = await import('./docker/find-engine.ts');
    const engine = await findEngine(probes);
    if ('endpoint' in engine) return { kind: 'docker', endpoint: engine.endpoint };
    refusals.push(...engine.refusals);
    if (engine.exclusive) throw unavailable(forced, refusals, NAMED_HINT);
  }
  if (forced !== 'docker') {
    try {
      return { kind: 'sandbox', bubblewrap: await probes.sandbox() };
    } catch (error) {
      if (!hasCode(error, 'runtime/sandbox-unavailable')) throw error;
      // Asked for by name, the sandbox's own error with its hint says more than a list of one.
      if (forced === 'sandbox') throw error;
      refusals.push({ strategy: 'sandbox', why: `${error.message}; ${error.hint}` });
    }
  }
  throw unavailable(forced, refusals);
}

/** `selectRuntime` on the real machine. `wanted` is for a saved workload, which belongs to one kind. */
export async function detectRuntime(environment: RuntimeEnvironment, wanted?: RuntimeKind): Promise<Runtime> {
  const { env, home, platform, cacheDir } = environment;
  /** Whoever answered has said already what it is. */
  const asked = new Map<Endpoint, EngineClient>();
  const selection = await selectRuntime(
    {
      env,
      home,
      readText: userFile,
      exists: (path) =>
        access(path).then(
          () => true,
          () => false,
        ),
      ping: async (endpoint) => {
        const { EngineClient } = await import('./docker/client.ts');
        const client = new EngineClient(endpoint);
        await client.about(AbortSignal.timeout(PING_MS));
        asked.set(endpoint, client);
      },
      sandbox: async () => {
        const { findBubblewrap } = await import('./sandbox/bubblewrap.ts');
        return findBubblewrap({ env, platform, cacheDir });
      },
    },
    wanted,
  );
  if (selection.kind === 'docker') {
    const { dockerRuntime } = await import('./docker/docker-runtime.ts');
    return dockerRuntime(selection.endpoint, environment, asked.get(selection.endpoint));
  }
  const { sandboxRuntime } = await import('./sandbox/sandbox-runtime.ts');
  return sandboxRuntime(environment, selection.bubblewrap);
}

function forcedKind(value: string | undefined): RuntimeKind | undefined {
  if (!value) return undefined;
  if (value === 'docker' || value === 'sandbox') return value;
  throw new SkepError('runtime/unknown', {
    message: `runtime "${value}" not found; available runtimes: docker, sandbox`,
  });
}

function unavailable(
  forced: RuntimeKind | undefined,
  refusals: readonly Refusal[],
  hint?: string,
): SkepError {
  // Sockets that are simply not there would bury the reasons that matter.
  const absent = refusals.filter((refusal) => refusal.why === 'does not exist').map((one) => one.strategy);
  const reasons = refusals.filter((refusal) => refusal.why !== 'does not exist');
  const tried = [
    ...reasons.map((refusal) => `${refusal.strategy}: ${refusal.why}`),
    ...(absent.length > 0 ? [`not there: ${absent.join(', ')}`] : []),
  ];
  const what =
    forced === undefined ? 'no runtime for workloads' : `runtime "${forced}" is not available on this system`;
  return new SkepError('runtime/unavailable', {
    message: `${what} (${tried.join('; ')})`,
    ...(hint === undefined ? {} : { hint }),
    detail: { refusals },
  });
}
