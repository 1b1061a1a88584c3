import { SkepError } from '@skep/core/errors/skep-error.ts';
import type { WorkloadSpec } from './runtime.ts';

/** Fails with `usage/not-available`: what is to be isolated never runs without, on a runtime that has no gateway yet. */
export function refuseIsolation({ isolation }: Pick<WorkloadSpec, 'isolation'>, kind: string): void {
  if (isolation === undefined) return;
  throw new SkepError('usage/not-available', {
    message: `network isolation is not available on the ${kind} runtime yet`,
    hint: 'run it with --isolate-network=false, or with --permission-profile none for no network at all',
  });
}
