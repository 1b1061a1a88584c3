import { stat } from 'node:fs/promises';
import path from 'node:path';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import type { WorkloadSpec } from '../runtime.ts';
import { isNamedVolume } from '../../permissions/mounts.ts';
import { checkWorkloadName } from '../workload-name.ts';
import { CONFINED_HOME, STEERING } from './confine.ts';

const NETWORKS: ReadonlySet<string> = new Set(['none', 'bridge', 'host']);

/** Refuses what the sandbox cannot do, before anything exists. Throws `runtime/invalid-workload`. */
export async function checkSpec(spec: WorkloadSpec, ownNetwork: boolean): Promise<void> {
  checkWorkloadName(spec.name);
  if (spec.privileged)
    throw invalid('privileged workloads are not possible in the sandbox', 'use a container engine');
  if (!NETWORKS.has(spec.network)) {
    throw invalid(
      `the sandbox has no network "${spec.network}"`,
      'use none, bridge or host, or a container engine',
    );
  }
  for (const port of spec.ports) {
    if (spec.network === 'none') {
      throw invalid(
        `port ${port.containerPort} cannot be reached without a network`,
        'use --permission-profile network',
      );
    }
    // In the machine's own network there is nothing in between that could translate a port.
    const translated = ownNetwork ? port.hostPort === 0 : port.hostPort !== port.containerPort;
    if (translated) {
      throw invalid(
        `the sandbox cannot map port ${port.hostPort} to ${port.containerPort}`,
        ownNetwork ? 'name both sides, as HOST:CONTAINER' : 'use the same port on both sides',
      );
    }
  }
  const { secretEnv = {} } = spec;
  // As root they are arguments of a program, and any user may read those.
  const steering = Object.keys(secretEnv).find((one) => STEERING.test(one));
  if (steering !== undefined) {
    throw invalid(
      `no secret can be the variable ${steering} in the sandbox`,
      'give it with -e, where it is none',
    );
  }
  const text = [...spec.args, ...Object.entries(spec.env).flat()];
  if (text.some((one) => one.includes('\0')))
    throw invalid('arguments and environment cannot contain NUL', 'remove it');
  const key = Object.keys(spec.env).find((one) => one === '' || one.includes('='));
  if (key !== undefined) throw invalid(`"${key}" is no name of an environment variable`, 'write NAME=value');
  await checkMounts(spec);
}

/** Places that make up the sandbox itself. */
const RESERVED = /^\/(?:$|(?:proc|sys|dev|app|skep|usr|etc|bin|lib\w*)(?:\/|$))/;

/**
 * Refuses mounts that the sandbox cannot make safely. bubblewrap follows links on its way to a target, as root of the
 * machine and while that is still within its reach. So no target may lie in a directory that a server, of this start or
 * an earlier one, could have filled. Throws `runtime/invalid-workload`.
 */
export async function checkMounts({
  mounts,
  data = [],
  volumes = [],
}: Pick<WorkloadSpec, 'mounts' | 'data' | 'volumes'>): Promise<void> {
  const all = [...mounts, ...volumes];
  const targets = [...all.map(({ target }) => path.posix.join(target, '.')), ...data];
  for (const target of data) {
    if (RESERVED.test(target) || target.startsWith('/home/skep')) {
      throw invalid(
        `the sandbox cannot keep "${target}"`,
        'take it out of data_paths, or use a container engine',
      );
    }
  }
  for (const [at, one] of all.entries()) {
    const { target } = one;
    const plain = targets[at] ?? target;
    if (!target.startsWith('/') || target.split('/').includes('..') || RESERVED.test(plain)) {
      throw invalid(
        `"${target}" cannot be a mount target in the sandbox`,
        'mount below another directory, such as /data',
      );
    }
    const above = [CONFINED_HOME, ...targets].find((one) => isBelow(plain, one));
    if (above !== undefined) {
      throw invalid(
        `mount target "${target}" lies below "${above}", where a server could put a link in its way`,
        `mount it beside "${above}" instead, such as at "${above.replace(/\/$/, '')}-${path.posix.basename(plain)}"; or use a container engine`,
      );
    }
    if (isNamedVolume(one)) continue;
    const found = await stat(one.source).catch(() => undefined);
    if (!found) throw invalid(`mount source "${one.source}" does not exist`, 'create it or correct the path');
  }
}

const isBelow = (target: string, directory: string): boolean =>
  target.startsWith(`${directory.replace(/\/$/, '')}/`) && target !== directory;

const invalid = (message: string, hint: string) =>
  new SkepError('runtime/invalid-workload', { message, hint });
