import { SkepError } from '@skep/core/errors/skep-error.ts';
import type { HostDeps } from './host-deps.ts';
import { hostOf, readStatus } from './state.ts';
import type { SuperviseOptions } from './supervise.ts';

/** So long may somebody else take to start a workload. */
const OTHERS_MS = 40_000;

/**
 * Waits while another process starts a workload: that hands it over, goes on to host it, or fails. Whoever has begun it for this
 * very request is not waited for. Fails with `file/locked` when that takes too long, and with the reason of the signal.
 */
export async function waitForOthers(
  name: string,
  { begunBy, signal }: Pick<SuperviseOptions, 'begunBy' | 'signal'>,
  { places, isAlive, self, clock }: Pick<HostDeps, 'places' | 'isAlive' | 'self' | 'clock'>,
): Promise<void> {
  const limit = AbortSignal.timeout(OTHERS_MS);
  for (;;) {
    const status = await readStatus(places, name).catch(() => undefined);
    // With a reason it is started again after a crash, by the process that hosts it all along.
    const isFirst = status?.status === 'starting' && status.status_context === undefined;
    const other = isFirst ? hostOf(status, isAlive)?.pid : undefined;
    if (other === undefined || other === self.pid || other === begunBy?.pid) return;
    if (limit.aborted) throw locked(name);
    await clock.sleep(100, signal);
  }
}

function locked(name: string): SkepError {
  const message = `"${name}" is still being started by another command`;
  return new SkepError('file/locked', { message, hint: `wait for it, or end it with skep stop ${name}` });
}
