import { SkepError } from '@skep/core/errors/skep-error.ts';
import type { HostDeps } from './host-deps.ts';
import type { ProcessIdentity } from './process-identity.ts';
import { hostOf, readStatus } from './state.ts';

/** So long may another process take to let go of a workload: it stops its server first. */
const ELSEWHERE_MS = 40_000;

type Surroundings = Pick<HostDeps, 'places' | 'isAlive' | 'self' | 'terminate' | 'clock'>;

/** The process that hosts the workload, when it is alive and not this one. */
export async function hostedElsewhere(
  name: string,
  { places, isAlive, self }: Pick<Surroundings, 'places' | 'isAlive' | 'self'>,
): Promise<ProcessIdentity | undefined> {
  const status = await readStatus(places, name).catch(() => undefined);
  const host = status && hostOf(status, isAlive);
  return host?.pid === self.pid ? undefined : host;
}

/**
 * Ends the other process that hosts the workload, if there is one, and waits until it has let go of it. Fails with `file/locked`
 * where that takes too long, as it does while an engine does not answer.
 */
export async function endElsewhere(name: string, deps: Surroundings): Promise<void> {
  const { terminate, clock } = deps;
  const other = await hostedElsewhere(name, deps);
  if (!other) return;
  terminate(other.pid);
  const late = clock.elapsed() + ELSEWHERE_MS;
  // One that only leaves the workload may wait for this very turn before it ends.
  while ((await hostedElsewhere(name, deps))?.pid === other.pid) {
    if (clock.elapsed() > late) throw stillHosted(name, other.pid);
    await clock.sleep(100);
  }
}

function stillHosted(name: string, pid: number): SkepError {
  return new SkepError('file/locked', {
    message: `"${name}" is still hosted by process ${pid}, which was asked to end ${ELSEWHERE_MS / 1000} s ago`,
    hint: `see with skep runtime check whether what "${name}" runs on answers, then try again`,
  });
}
