import { SkepError } from '@skep/core/errors/skep-error.ts';
import { RUNTIME_KINDS, type RuntimeKind } from '../settings/identity.ts';
import type { Finding, FindRuntime, Refusal, RuntimeEnvironment } from './environment.ts';
import type { Runtime } from './runtime.ts';

/** What workloads can run on, a row each; tried in the order of `RUNTIME_KINDS`, and loaded when it is tried. */
const RUNTIMES: Readonly<Record<RuntimeKind, () => Promise<FindRuntime>>> = {
  docker: async () => (await import('./docker/find-docker.ts')).findDocker,
  kubernetes: async () => (await import('./kubernetes/find-cluster.ts')).findKubernetes,
  sandbox: async () => (await import('./sandbox/bubblewrap.ts')).findSandbox,
};

/** The runtime that a saved workload belongs to, or only the kind that a person named. */
export interface WantedRuntime {
  readonly kind: string;
  readonly id?: string;
  readonly endpoint?: string;
}

/** What is wanted, or what `SKEP_RUNTIME` names, or the first that works. Fails as `selectRuntime` does. */
export async function detectRuntime(
  environment: RuntimeEnvironment,
  wanted?: WantedRuntime,
): Promise<Runtime> {
  const named = wanted?.kind ?? environment.env['SKEP_RUNTIME'];
  const find = async (kind: RuntimeKind): ReturnType<FindRuntime> =>
    (await RUNTIMES[kind]())(environment, wanted?.endpoint, kind === named);
  return selectRuntime(find, named);
}

/** The runtime that runs images, or the one that runs packages alone, or why there is none. */
export function findAble(
  { runsImages }: Pick<Runtime, 'runsImages'>,
  environment: RuntimeEnvironment,
): ReturnType<FindRuntime> {
  return findKind(runsImages ? 'docker' : 'sandbox', environment);
}

async function findKind(kind: RuntimeKind, environment: RuntimeEnvironment): ReturnType<FindRuntime> {
  return (await RUNTIMES[kind]())(environment, undefined);
}

/**
 * The first kind that is found, or the one that is wanted and nothing else. What the person named is never
 * replaced by something else. Fails with `runtime/unknown`, or with `runtime/unavailable` and everything that was tried.
 */
export async function selectRuntime<Found>(
  find: (kind: RuntimeKind) => Promise<Finding<Found>>,
  wanted?: string,
): Promise<Found> {
  const forced = checkKind(wanted);
  const refusals: Refusal[] = [];
  for (const kind of forced === undefined ? RUNTIME_KINDS : [forced]) {
    const finding = await find(kind);
    if ('found' in finding) return finding.found;
    if (forced !== undefined && finding.error) throw finding.error;
    refusals.push(...finding.refusals);
    if (finding.exclusive !== undefined) throw unavailable(forced, refusals, finding.exclusive);
  }
  throw unavailable(forced, refusals);
}

function checkKind(wanted: string | undefined): RuntimeKind | undefined {
  if (!wanted) return undefined;
  const kind = RUNTIME_KINDS.find((one) => one === wanted);
  if (kind !== undefined) return kind;
  throw new SkepError('runtime/unknown', {
    message: `runtime "${wanted}" not found; available runtimes: ${RUNTIME_KINDS.join(', ')}`,
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
    hint: refusals.find((refusal) => refusal.hint !== undefined)?.hint ?? hint,
    detail: { refusals },
  });
}
