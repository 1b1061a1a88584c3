import { SkepError } from '@skep/core/errors/skep-error.ts';
import type { SyncStatus } from '../store/rows.ts';
import type { IngestReport } from './ingest.ts';

// How the status of a source goes on (docs/behaviour/registry.md#source-status), and when it is synchronised
// again. Times are RFC 3339 UTC.

export function syncStarted(status: SyncStatus, now: string): SyncStatus {
  return { ...status, phase: 'syncing', message: 'Synchronising', lastAttempt: now };
}

interface Success extends Pick<SyncStatus, 'nextSync' | 'changed' | 'contentHash' | 'filterHash'> {
  readonly now: string;
  /** Absent when nothing changed: the last one still holds. */
  readonly report?: IngestReport;
}

export function syncSucceeded(status: SyncStatus, { now, report, ...success }: Success): SyncStatus {
  return {
    ...status,
    ...success,
    phase: 'complete',
    message: messageFor(report ?? reportOf(status)),
    lastSync: now,
    lastSuccess: now,
    attemptCount: 0,
    counts: report?.entries ?? status.counts,
    report: report === undefined ? status.report : JSON.stringify(report),
  };
}

/** Counts, hashes and report stay: they are about the last good data, which is still served. */
export function syncFailed(
  status: SyncStatus,
  { now, ...failure }: Pick<SyncStatus, 'nextSync' | 'message'> & { readonly now: string },
): SyncStatus {
  return { ...status, ...failure, phase: 'failed', lastSync: now, attemptCount: status.attemptCount + 1 };
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

const CLASSES: Readonly<Record<string, FailureClass>> = {
  catalog: 'ValidationFailed',
  store: 'StorageFailed',
  config: 'HandlerCreationFailed',
};

export function failureClass(error: unknown): FailureClass {
  if (!(error instanceof SkepError)) return 'FetchFailed';
  if (error.code.startsWith('source/invalid-')) return 'HandlerCreationFailed';
  return CLASSES[error.code.split('/', 1)[0] ?? ''] ?? 'FetchFailed';
}

/** Share of the interval by which a wait is longer or shorter, so that sources of one interval drift apart. */
const JITTER = 0.1;
const LONGEST_BACK_OFF = 6 * 60 * 60_000;
const LONGEST_SYNC = 5 * 60_000;
/** An interval of a second does not mean that git has only a second. */
const SHORTEST_LIMIT = 10_000;

/**
 * Milliseconds until the next synchronisation of a source (docs/behaviour/registry.md#schedule): its interval, doubled with every
 * further failure in a row up to eight times but not beyond six hours, ±10 %. `random` is at least 0 and below 1.
 */
export function waitFor(interval: number, failures: number, random: number): number {
  const factor = 2 ** Math.min(Math.max(failures - 1, 0), 3);
  const backedOff = Math.max(interval, Math.min(interval * factor, LONGEST_BACK_OFF));
  return Math.round(backedOff * (1 - JITTER + 2 * JITTER * random));
}

/** Milliseconds that one synchronisation may take. */
export function syncLimit(interval: number | null): number {
  return Math.min(LONGEST_SYNC, Math.max(interval ?? LONGEST_SYNC, SHORTEST_LIMIT));
}
