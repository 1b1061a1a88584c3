import { SkepError } from '@skep/core/errors/skep-error.ts';
import { otherUser } from '../permissions/confined-user.ts';
import { isReadOnly } from '../permissions/hardening.ts';
import { checkMountSources, type Mount } from '../permissions/mounts.ts';
import { profileMounts } from '../permissions/profile.ts';
import { choosePort, isFree } from '../runtime/free-port.ts';
import type { RunConfig } from '../run-config/run-config.ts';
import type { SecretEnv } from '../secrets/workload-secrets.ts';
import type { Observed, Runtime, WorkloadSpec } from '../runtime/runtime.ts';
import { isStuck } from '../runtime/stuck.ts';
import { isOwn } from './owner.ts';
import type { Tell } from './protocol.ts';
import { checkStart, type PolicyGate } from './policy.ts';
import { HOST_PORT_LABEL, SPEC_LABEL, toWorkloadSpec, usesHostNetwork } from './workload-spec.ts';

export interface LaunchOptions {
  /** Host port to bind again: a proxy that forwards there already is waiting. */
  readonly hostPort?: number | undefined;
  readonly runtime: Runtime;
  /** See `ownerOf`. */
  readonly owner: string;
  readonly random: (min: number, max: number) => number;
  /** Whoever asks has made it a moment ago (`launchAhead`): it is taken over as it is, and counts as made by this start. */
  readonly begun?: boolean;
  /** Somebody asked for a start: then what the image's name means now counts, not what was made from it once. */
  readonly renew?: boolean;
  readonly tell?: Tell;
  /** Absent where everything is allowed. */
  readonly policy?: PolicyGate;
  /** The workload's secret variables, in memory only. */
  readonly secrets: () => Promise<SecretEnv>;
  /** What is mounted over its mounts at this start; see `overlaysOf`. */
  readonly overlays: (config: RunConfig) => Promise<readonly Mount[]>;
  /** See `WorkloadSpec.learns`. */
  readonly learns?: boolean;
  /** What has to be written down before anything is made. */
  readonly noted?: Promise<void>;
}

export interface Launched {
  readonly observed: Observed;
  /** There was nothing of it before. */
  readonly made: boolean;
}

/** Grace before a workload is killed, milliseconds. */
export const GRACE_MS = 10_000;

/**
 * Creates and starts the workload, or starts the container it left when that was made from the same description: its
 * logs and what the server wrote inside are then still there. Where that gets lost it is told. A container of that name that is not ours is never touched.
 * Fails with `policy/start-blocked`, with nothing made.
 */
export async function launch(config: RunConfig, options: LaunchOptions): Promise<Launched> {
  const { runtime } = options;
  const { spec, made, reusable, runs } = await make(config, options);
  if (runs) return { observed: runs, made };
  let started = false;
  try {
    await begin(spec, { ...options, reused: reusable, mayReplace: true });
    started = true;
    const observed = await runtime.inspect(config.name);
    if (observed) return { observed, made };
  } catch (error) {
    if (started) await runtime.stop(config.name, GRACE_MS);
    if (made) await runtime.remove(config.name);
    throw error;
  }
  throw vanished(config.name);
}

/** Somebody has removed it behind our back. */
export function vanished(name: string): SkepError {
  return new SkepError('run/crashed-at-start', {
    message: `workload "${name}" vanished while it was started`,
  });
}

/**
 * As `launch`, for whoever then has another process take it over, with `begun`. Where the runtime lets both ask for its
 * start, that goes on when this resolves: what it fails with, the other one hears too (decision 0462).
 */
export async function launchAhead(config: RunConfig, options: LaunchOptions): Promise<void> {
  const { runtime } = options;
  const { spec, made, reusable } = await make(config, options);
  try {
    // Only one may make it anew to start it: whoever takes it over, unless that waits until it runs.
    const starting = begin(spec, { ...options, reused: reusable, mayReplace: !made });
    if (made && runtime.sharesStart?.(spec)) starting.catch(() => {});
    else await starting;
  } catch (error) {
    if (made) await runtime.remove(config.name);
    throw error;
  }
}

interface Made {
  readonly spec: WorkloadSpec;
  /** See `Launched`. */
  readonly made: boolean;
  /** It was there, and may hold what the server has written. */
  readonly reusable: boolean;
  /** It was begun for this start, and runs. */
  readonly runs?: Observed;
}

/** All but its start. On failure nothing that was made stays. */
async function make(config: RunConfig, options: LaunchOptions): Promise<Made> {
  const { runtime, owner } = options;
  await checkStart(options.policy, config);
  const left = await inspectOwn(config.name, options);
  const mounts = profileMounts(config.permission_profile, '/');
  await checkMountSources(config.name, mounts, config.mount_sources ?? {});
  const secrets = await options.secrets();
  const hostPort = await hostPortFor(config, left, options);
  const port = hostPort === undefined ? {} : { hostPort };
  const overlays = await options.overlays(config);
  const { learns = false } = options;
  const insteadOfRoot = await otherUserOf(config, mounts);
  const spec = toWorkloadSpec(config, { owner, runtime, secrets, overlays, learns, insteadOfRoot, ...port });
  if (options.begun && left && left.state !== 'exited' && isMadeFrom(left, spec))
    return { spec, made: true, reusable: false, ...(left.state === 'running' && { runs: left }) };
  const made = left === undefined;
  const reusable = !made && (await isReusable(left, spec, options));
  if (!made && !reusable) await runtime.stop(config.name, GRACE_MS);
  await checkTargetPort(config);
  await options.noted;
  if (made) await runtime.create(spec);
  else if (!reusable && !(await runtime.replace(spec))) {
    options.tell?.({ kind: 'warning', text: lostFiles(config.name) });
  }
  return { spec, made, reusable };
}

interface BeginOptions extends LaunchOptions {
  /** It was there, and may hold what the server has written. */
  readonly reused: boolean;
  readonly mayReplace: boolean;
}

/** What the runtime cannot start any more is made anew: better without the files of a server that was there than not at all. */
async function begin(spec: WorkloadSpec, { runtime, tell, reused, mayReplace }: BeginOptions): Promise<void> {
  const waits = (line: string): void => tell?.({ kind: 'step', title: `Waiting for ${spec.name}: ${line}` });
  try {
    await runtime.start(spec.name, spec.secretEnv, waits);
  } catch (error) {
    if (!mayReplace || !isStuck(error)) throw error;
    if (!(await runtime.replace(spec)) && reused) tell?.({ kind: 'warning', text: lostFiles(spec.name) });
    await runtime.start(spec.name, spec.secretEnv, waits);
  }
}

/** Only where nothing of the image can be written: there it does not matter to whom that belongs. */
async function otherUserOf(config: RunConfig, mounts: readonly Mount[]): Promise<string | undefined> {
  if (config.hardening !== 'other-user' || !isReadOnly(config)) return undefined;
  const user = await otherUser(config.name, mounts);
  return user && `${user.uid}:${user.gid}`;
}

const isMadeFrom = (left: Observed, spec: WorkloadSpec): boolean =>
  left.labels[SPEC_LABEL] === spec.labels[SPEC_LABEL];

async function isReusable(
  left: Observed,
  spec: WorkloadSpec,
  { runtime, renew }: LaunchOptions,
): Promise<boolean> {
  if (left.state !== 'exited' || !isMadeFrom(left, spec)) return false;
  return renew !== true || runtime.isCurrent(left.name);
}

const lostFiles = (name: string): string =>
  `${name} was made anew, because its image or its settings have changed; files that the server had written inside are gone`;

/**
 * In the machine's network another program on the port would be taken for the server, and get what is meant for it.
 * Fails with `run/port-busy`.
 */
async function checkTargetPort(config: RunConfig): Promise<void> {
  const { transport, target_port: port } = config;
  if (transport === 'stdio' || port === undefined || !usesHostNetwork(config)) return;
  if (await isFree(config.target_host || '127.0.0.1', port)) return;
  throw new SkepError('run/port-busy', {
    message: `port ${port}, which the server of "${config.name}" is to listen on, is taken`,
    hint: 'give the server another --target-port, or end what listens there',
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
  return new URL(`http://${host}:${hostPort ?? config.target_port ?? 0}`);
}

/**
 * A free port of the host for the server's own port. A network of its own has its own ports, so two servers may both
 * want 3000; in that of the machine the server's own port is used as it is.
 */
async function hostPortFor(
  config: RunConfig,
  left: Observed | undefined,
  options: LaunchOptions,
): Promise<number | undefined> {
  const { remote_url: elsewhere, transport } = config;
  if (elsewhere !== undefined || transport === 'stdio' || usesHostNetwork(config)) return undefined;
  if (options.hostPort !== undefined) return options.hostPort;
  const earlier = hostPortOf(left) ?? 0;
  if (options.begun && earlier > 0) return earlier;
  if (left?.state === 'exited' && earlier > 0 && (await isFree('127.0.0.1', earlier))) return earlier;
  return choosePort({
    host: '127.0.0.1',
    promised: async () => new Map([[config.port, config.name]]),
    random: options.random,
  });
}
