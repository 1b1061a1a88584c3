import { createHash } from 'node:crypto';
import type { Observed } from '../runtime/runtime.ts';

/** Short identity of one user's state directory, so that two of them can share an engine without touching each other. */
export function ownerOf(stateDir: string): string {
  return createHash('sha256').update(stateDir).digest('hex').slice(0, 16);
}

/** True when Skep, in this state directory, made what is seen. Anything else of that name is not ours to remove. */
export function isOwn(observed: Observed, owner: string): boolean {
  return observed.labels['skep.managed'] === 'true' && observed.labels['skep.state'] === owner;
}
