import { SkepError } from '@skep/core/errors/skep-error.ts';
import type { SyncStatus } from '../store/rows.ts';
import type { IngestReport } from './ingest.ts';

// How the status of a source goes on (docs/behaviour/registry.md#source-status). Times are RFC 3339 UTC.

export function syncStarted(status: SyncStatus, now: string): SyncStatus {
  return { ...status, phase: 'syncing', message: 'Synchronising', lastAttempt: now };
}

export interface Success {
  readonly now: string;
  readonly nextSync: string | null;
  readonly changed: boolean;
  /** Absent when nothing changed: the last one still holds. */
  readonly report?: IngestReport;
  readonly contentHash: string;
  readonly filterHash: string | null;
}

export function syncSucceeded(status: SyncStatus, success: Success): SyncStatus {
  const { now, nextSync, changed, report, contentHash, filterHash } = success;
  return {
    ...status,
    phase: 'complete',
    message: messageFor(report ?? reportOf(status)),
    lastSync: now,
    lastSuccess: now,
    nextSync,
    attemptCount: 0,
    changed,
    counts: report?.entries ?? status.counts,
    contentHash,
    filterHash,
    report: report === undefined ? status.report : JSON.stringify(report),
  };
}

/** Counts, hashes and report stay: they are about the last good data, which is still served. */
export function syncFailed(
  status: SyncStatus,
  {
    now,
    nextSync,
    message,
  }: { readonly now: string; readonly nextSync: string | null; readonly message: string },
): SyncStatus {
  return {
    ...status,
    phase: 'failed',
    message,
    lastSync: now,
    nextSync,
    attemptCount: status.attemptCount + 1,
  };
}

/** What the last good data left out; undefined before the first success. Written by this program. */
export function reportOf({ report }: Pick<SyncStatus, 'report'>): IngestReport | undefined {
  return report === null ? undefined : JSON.parse(report);
}

function messageFor(report: IngestReport | undefined): string {
  const skipped = report?.skippedTotal ?? 0;
  const done = 'Sync completed successfully';
  return skipped === 0 ? done : `${done}; ${skipped} invalid entries were left out`;
}

/** Where a synchronisation failed, as metrics count it (docs/behaviour/registry.md#source-status). */
export type FailureClass = 'HandlerCreationFailed' | 'ValidationFailed' | 'FetchFailed' | 'StorageFailed';

export function failureClass(error: unknown): FailureClass {
  const area = error instanceof SkepError ? error.code.split('/', 1)[0] : undefined;
  if (area === 'catalog') return 'ValidationFailed';
  if (area === 'store') return 'StorageFailed';
  const isSettings =
    area === 'config' || (error instanceof SkepError && error.code.startsWith('source/invalid-'));
  return isSettings ? 'HandlerCreationFailed' : 'FetchFailed';
}
