import { SkepError } from '@skep/core/errors/skep-error.ts';
import { choosePort, isFree } from '../run/free-port.ts';
import type { RunConfig } from '../run-config/run-config.ts';
import type { Observed, Runtime } from '../runtime/runtime.ts';
import { HOST_PORT_LABEL, isOwn, networkOf, SPEC_LABEL, toWorkloadSpec } from './workload-spec.ts';

export interface LaunchOptions {
  /** Host port to bind again: a proxy that forwards there already is waiting. */
  readonly hostPort?: number | undefined;
  readonly runtime: Runtime;
  /** See `ownerOf`. */
  readonly owner: string;
  readonly random: (min: number, max: number) => number;
}

/** Grace before a workload is killed, milliseconds. */
export const GRACE_MS = 10_000;

/**
 * Creates and starts the workload, or starts the container it left when that was made from the same description: its
 * logs and its writable layer are then still there. A container of that name that is not ours is never touched.
 */
export async function launch(config: RunConfig, options: LaunchOptions): Promise<Observed> {
  const { runtime, owner } = options;
  const left = await inspectOwn(config.name, options);
  const hostPort = await hostPortFor(config, left, options);
  const spec = toWorkloadSpec(config, { owner, ...(hostPort === undefined ? {} : { hostPort }) });
  const reusable = left?.state === 'exited' && left.labels[SPEC_LABEL] === spec.labels[SPEC_LABEL];
  if (left && !reusable) {
    await runtime.stop(config.name, GRACE_MS);
    await runtime.remove(config.name);
  }
  if (!reusable) await runtime.create(spec);
  try {
    await runtime.start(config.name);
  } catch (error) {
    if (!reusable) await runtime.remove(config.name);
    throw error;
  }
  const started = await runtime.inspect(config.name);
  if (started) return started;
  throw new SkepError('run/crashed-at-start', {
    message: `workload "${config.name}" vanished while it was started`,
  });
}

/** The workload as the runtime sees it; fails with `run/name-taken` when the name belongs to somebody else there. */
export async function inspectOwn(
  name: string,
  { runtime, owner }: Pick<LaunchOptions, 'runtime' | 'owner'>,
): Promise<Observed | undefined> {
  const seen = await runtime.inspect(name);
  if (seen && !isOwn(seen, owner)) {
    throw new SkepError('run/name-taken', {
      message: `the ${runtime.kind} engine has something named "${name}" that this Skep did not make`,
      hint: 'choose another --name, or remove it with the tool that made it',
    });
  }
  return seen;
}

/** The host port that a workload's own port was bound to when it was made. */
export function hostPortOf(observed: Observed | undefined): number | undefined {
  const label = observed?.labels[HOST_PORT_LABEL];
  return label === undefined ? undefined : Number(label);
}

/** Where the proxy of an HTTP server forwards to; undefined for stdio. */
export function forwardTarget(config: RunConfig, observed: Observed): URL | undefined {
  if (config.transport === 'stdio') return undefined;
  const hostPort = hostPortOf(observed);
  const host = hostPort === undefined ? config.target_host || '127.0.0.1' : '127.0.0.1';
  return new URL(`http://${host}:${String(hostPort ?? config.target_port ?? 0)}`);
}

/**
 * A free port of the host for the server's own port. A container has its own port space, so two servers may both
 * want 3000; a sandbox and host networking share the host's, so there the server's own port is used as it is.
 */
async function hostPortFor(
  config: RunConfig,
  left: Observed | undefined,
  options: LaunchOptions,
): Promise<number | undefined> {
  if (config.transport === 'stdio' || options.runtime.kind !== 'docker') return undefined;
  if (networkOf(config) === 'host') return undefined;
  if (options.hostPort !== undefined) return options.hostPort;
  const earlier = hostPortOf(left) ?? 0;
  if (left?.state === 'exited' && earlier > 0 && (await isFree('127.0.0.1', earlier))) return earlier;
  return choosePort({ host: '127.0.0.1', promised: new Set([config.port]), random: options.random });
}
