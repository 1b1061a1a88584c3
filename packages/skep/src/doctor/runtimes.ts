import { SkepError } from '@skep/core/errors/skep-error.ts';
import { runtimeEnvironment } from '../cli/runtime-environment.ts';
import { findAble } from '../runtime/detect.ts';
import type { Finding as Found } from '../runtime/environment.ts';
import type { Runtime } from '../runtime/runtime.ts';
import { DEFAULT_LIMITS } from '../permissions/limits.ts';
import { isOwn, ownerOf } from '../supervisor/owner.ts';
import { ok, someOf, type Finding, type Inquiry } from './check.ts';
import { broken } from './machine.ts';
import { namesOf } from './state.ts';

/** What commands would use. */
export async function lookAtRuntime({ runtime, signal }: Inquiry): Promise<Finding> {
  try {
    const { kind, version, endpoint } = await (await runtime()).probe(signal);
    return ok(`${kind} ${version} at ${endpoint}`);
  } catch (error) {
    return broken(error);
  }
}

export async function lookAtEngine(inquiry: Inquiry): Promise<Finding> {
  const found = await lookFor({ runsImages: true }, inquiry);
  if ('found' in found) return describe(found.found, inquiry.signal);
  const tried = found.refusals.filter(({ why }) => why !== 'does not exist');
  const text = tried.map(({ strategy, why }) => `${strategy}: ${why}`).join('; ');
  if (text === '') return { verdict: 'note', text: 'there is none; servers that are images do not run here' };
  const remedy = tried.find(({ hint }) => hint !== undefined)?.hint ?? found.exclusive;
  return { verdict: 'warning', text, ...(remedy === undefined ? {} : { remedy }) };
}

export async function lookAtSandbox(inquiry: Inquiry): Promise<Finding> {
  const found = await lookFor({ runsImages: false }, inquiry);
  if ('found' in found) return describe(found.found, inquiry.signal);
  const { message, hint } = found.error ?? {};
  const text = message ?? found.refusals.map(({ why }) => why).join('; ');
  return { verdict: 'note', text, ...(hint === undefined ? {} : { remedy: hint }) };
}

/** How far the networks of servers in the sandbox lead. */
export async function lookAtNetwork(inquiry: Inquiry): Promise<Finding | undefined> {
  const found = await lookFor({ runsImages: false }, inquiry);
  if (!('found' in found)) return undefined;
  const why = found.found.narrowNetwork;
  if (why === undefined) return ok('servers in the sandbox reach what this machine reaches');
  return {
    verdict: 'warning',
    text: `servers in the sandbox reach public hosts only, and only where their programs ask a proxy: ${why}`,
  };
}

/** Whether something holds what servers may use. */
export async function lookAtLimits({ runtime }: Inquiry): Promise<Finding | undefined> {
  const used = await unlessUnusable(runtime());
  if (used === undefined) return undefined;
  const limits = { ...DEFAULT_LIMITS, cpus: 1 };
  const open = await unlessUnusable(used.cautions({ name: 'limits', mounts: [], limits }));
  if (open === undefined) return undefined;
  if (open.length === 0) return ok(`held by ${used.limitsHeldBy}`);
  return { verdict: 'note', text: `held by ${used.limitsHeldBy}; ${open.join('; ')}` };
}

/** What runs as ours, or lies there, and belongs to no server that is known. */
export async function lookAtLeftovers({ context, runtime }: Inquiry): Promise<Finding | undefined> {
  const seen = await unlessUnusable(runtime().then((one) => one.list()));
  if (seen === undefined) return undefined;
  const owner = ownerOf(context.places.stateDir);
  const known = await namesOf(context.places);
  const left = seen.filter((one) => isOwn(one, owner) && !known.includes(one.name)).map(({ name }) => name);
  if (left.length === 0) return ok('none');
  return {
    verdict: 'warning',
    text: someOf(left),
    remedy: `remove them: skep rm ${someOf(left.slice(0, 5))}`,
  };
}

/** What fails for want of a runtime is told by the checks of runtimes. */
async function unlessUnusable<T>(asked: Promise<T>): Promise<T | undefined> {
  try {
    return await asked;
  } catch (error) {
    if (error instanceof SkepError) return undefined;
    throw error;
  }
}

/** The runtime of a kind, if it is there. */
export async function lookFor(
  able: Pick<Runtime, 'runsImages'>,
  { context }: Inquiry,
): Promise<Found<Runtime>> {
  if (context.connectRuntime === undefined) return findAble(able, runtimeEnvironment(context));
  const found = await context.connectRuntime(undefined);
  return found.runsImages === able.runsImages ? { found } : { refusals: [] };
}

async function describe(runtime: Runtime, signal: AbortSignal): Promise<Finding> {
  try {
    const { version, endpoint } = await runtime.probe(signal);
    return ok(`version ${version} at ${endpoint}`);
  } catch (error) {
    return { ...broken(error), verdict: 'warning' };
  }
}
