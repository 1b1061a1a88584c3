import type { Context } from '../cli/context.ts';
import type { Runtime } from '../runtime/runtime.ts';

/** An engine that takes longer has something to do. Milliseconds. */
const MAKE_AHEAD_MS = 15_000;

/** It may not be able to hear. Milliseconds. */
const ASKED_MS = 20;

/**
 * Resolves once an engine has been asked, which this process would keep from it with all that it has to do next. What could not
 * be made ahead is made, or refused, when the workload is created; nobody waits for it, but at the end of the run.
 */
export async function makeAhead(
  runtime: Pick<Runtime, 'makeAhead'>,
  { signal, clock }: Pick<Context, 'signal' | 'clock'>,
): Promise<void> {
  if (runtime.makeAhead === undefined) return;
  const either = AbortSignal.any([signal, AbortSignal.timeout(MAKE_AHEAD_MS)]);
  const { promise: asked, resolve } = Promise.withResolvers<void>();
  runtime.makeAhead(either, resolve).then(resolve, resolve);
  const waited = new AbortController();
  await Promise.race([asked, clock.sleep(ASKED_MS, waited.signal).catch(() => {})]);
  waited.abort();
}
