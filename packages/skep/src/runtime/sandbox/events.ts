import { mkdir } from 'node:fs/promises';
import type { Observed, RuntimeEvent } from '../runtime.ts';
import { FileChanges } from './log-file.ts';

/** Longest time between two looks in milliseconds. */
const POLL_MS = 1000;

/** Compares the list with the one before whenever a state file below `directory` changes, and at least every second. */
export async function* sandboxEvents(
  directory: string,
  list: () => Promise<readonly Observed[]>,
  signal: AbortSignal,
): AsyncGenerator<RuntimeEvent> {
  await mkdir(directory, { recursive: true, mode: 0o750 });
  using changes = new FileChanges(directory, { recursive: true });
  let before = byName(await list());
  while (!signal.aborted) {
    await changes.next(POLL_MS, signal);
    const now = byName(await list());
    yield* differences(before, now);
    before = now;
  }
}

type Known = ReadonlyMap<string, Observed>;

const byName = (all: readonly Observed[]): Known => new Map(all.map((one) => [one.name, one]));

/** What must have happened between two looks. A restart in between shows as exit and start. */
export function differences(before: Known, now: Known): RuntimeEvent[] {
  const events: RuntimeEvent[] = [];
  for (const [name, old] of before) {
    const current = now.get(name);
    const restarted = current?.startedAt?.getTime() !== old.startedAt?.getTime();
    if (old.state === 'running' && (current?.state !== 'running' || restarted))
      events.push({ name, action: 'exit' });
    if (!current) events.push({ name, action: 'remove' });
  }
  for (const [name, current] of now) {
    const old = before.get(name);
    if (!current.startedAt || current.startedAt.getTime() === old?.startedAt?.getTime()) continue;
    events.push({ name, action: 'start' });
    if (current.state === 'exited') events.push({ name, action: 'exit' });
  }
  return events;
}
