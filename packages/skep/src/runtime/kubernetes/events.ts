import type { Clock } from '@skep/core/time/clock.ts';
import type { Observed, RuntimeEvent } from '../runtime.ts';

/** How often changes of others are looked for. */
const LOOK_MS = 1_000;

/** What changes of the workloads that are listed, looked at once a second, until the signal aborts. */
export async function* workloadEvents(
  list: () => Promise<readonly Observed[]>,
  clock: Clock,
  signal: AbortSignal,
): AsyncGenerator<RuntimeEvent> {
  let before = new Map<string, Observed['state']>();
  for (let first = true; !signal.aborted; first = false) {
    const now = new Map((await list()).map(({ name, state }) => [name, state]));
    if (!first) yield* news(before, now);
    before = now;
    await clock.sleep(LOOK_MS, signal).catch((error: unknown) => {
      if (!signal.aborted) throw error;
    });
  }
}

function* news(
  before: ReadonlyMap<string, Observed['state']>,
  now: ReadonlyMap<string, Observed['state']>,
): Generator<RuntimeEvent> {
  for (const [name, state] of now) {
    if (state === before.get(name)) continue;
    if (state === 'running') yield { name, action: 'start' };
    if (state === 'exited') yield { name, action: 'exit' };
  }
  for (const name of before.keys()) if (!now.has(name)) yield { name, action: 'remove' };
}
