import { isRecord } from '@skep/core/json/is-record.ts';
import { hasCode, SkepError } from '@skep/core/errors/skep-error.ts';

/** The detail of a `runtime/start-failed` that no repetition mends: an engine that was killed as it started a container may
 * never start that one again, and another in its place. */
export const STUCK = { stuck: true } as const;

export function isStuck(error: unknown): boolean {
  if (!hasCode(error, 'runtime/start-failed') || !(error instanceof SkepError)) return false;
  return isRecord(error.detail) && error.detail['stuck'] === true;
}
