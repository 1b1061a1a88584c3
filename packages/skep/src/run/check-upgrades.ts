import { once } from 'node:events';
import type { Context } from '../cli/context.ts';
import { planUpgrade } from '../plan/plan-upgrade.ts';
import { tryEach } from '../workloads/select.ts';
import { surroundingsOf } from './carry-out.ts';

/** All of them together; `list` is looked at, not waited for. */
const MAX_WAIT_MS = 10_000;

/** What a workload has no newer version than. */
export const CURRENT = 'current';

/**
 * What `skep upgrade` would bring each workload to: an exact version, or the reference of another image; `CURRENT` where
 * that is what it has. Absent for those of which it cannot be told without fetching it, or in time. Fetches nothing.
 */
export async function checkUpgrades(
  names: readonly string[],
  context: Context,
): Promise<ReadonlyMap<string, string>> {
  const signal = AbortSignal.any([context.signal, AbortSignal.timeout(MAX_WAIT_MS)]);
  const found = new Map<string, string>();
  const checks = tryEach(names, async (name) => {
    signal.throwIfAborted();
    const upgrade = await upgradeOf(name, { ...context, signal });
    if (upgrade !== undefined) found.set(name, upgrade);
  });
  // Whom a check waits for may not listen to the signal.
  if (!signal.aborted) await Promise.race([checks, once(signal, 'abort')]);
  context.signal.throwIfAborted();
  return new Map(found);
}

async function upgradeOf(name: string, context: Context): Promise<string | undefined> {
  const { config, runtime, preparation } = await planUpgrade({ name }, surroundingsOf(context));
  const { source } = preparation;
  // Only the engine knows what a tag means by now, and pulls it to tell.
  if (source.kind === 'image')
    return isImageOf(source.reference, config.image) ? undefined : source.reference;
  const newest = await runtime.newest(source, context.signal);
  const has = config.package_version ?? config.package?.version;
  if (newest === undefined || has === undefined) return undefined;
  return newest === has ? CURRENT : newest;
}

/** True for what a workload runs, also where it was verified and its digest is kept. */
const isImageOf = (reference: string, image: string): boolean =>
  image === reference || image.startsWith(`${reference}@`);
