import { isRecord } from '@skep/core/json/is-record.ts';
import { formatDuration } from '@skep/core/time/duration.ts';
import { shownClaims } from '../../../access/claim-set.ts';
import { withoutUrlSecrets } from '../../../sources/url-secrets.ts';
import type { StoredSource, SyncStatus } from '../../../store/rows.ts';

/** How a source is shown (docs/behaviour/registry.md#sources-over-the-api); members without a value are undefined, which JSON leaves out. */
export function sourceInfo(source: StoredSource, status: SyncStatus | undefined) {
  const { name, kind, creationType, filter, interval, orphaned, createdAt, updatedAt } = source;
  return {
    name,
    type: kind,
    creationType,
    sourceType: kind,
    format: source.format ?? undefined,
    sourceConfig: shownConfig(source.config),
    filterConfig: filter === null ? undefined : jsonValue(filter),
    syncSchedule: interval === null ? undefined : formatDuration(interval),
    claims: shownClaims(source.claims),
    syncStatus: status && syncStatusInfo(status),
    orphaned: orphaned || undefined,
    createdAt,
    updatedAt,
  };
}

/**
 * The settings without what only the server needs: user names, passwords and other secrets in URLs. Inline data may be megabytes and is
 * what the source's entries show already, so its size stands for it.
 */
function shownConfig(config: string): unknown {
  const value = jsonValue(withoutUrlSecrets(config));
  if (!isRecord(value)) return {};
  return Object.fromEntries(
    Object.entries(value).map(([key, member]) =>
      key === 'data' && typeof member === 'string' ? ['dataBytes', Buffer.byteLength(member)] : [key, member],
    ),
  );
}

function jsonValue(text: string): unknown {
  return JSON.parse(text);
}

/** How a source is doing (docs/behaviour/registry.md#source-status); members without a value are undefined. */
export function syncStatusInfo(status: SyncStatus): object {
  const { phase, message, attemptCount, changed, counts } = status;
  return {
    phase,
    message,
    lastSyncTime: status.lastSync ?? undefined,
    lastAttempt: status.lastAttempt ?? undefined,
    lastSuccessTime: status.lastSuccess ?? undefined,
    nextSyncTime: status.nextSync ?? undefined,
    hash: status.contentHash ?? undefined,
    attemptCount,
    changed,
    serverCount: counts.server,
    skillCount: counts.skill,
    pluginCount: counts.plugin,
    skipped: skippedOf(status.report),
  };
}

/** What the last good data left out. The report is written by the synchronisation, which may be of another version. */
function skippedOf(report: string | null): readonly unknown[] | undefined {
  const value = report === null ? undefined : jsonValue(report);
  const skipped = isRecord(value) ? value['skipped'] : undefined;
  return Array.isArray(skipped) && skipped.length > 0 ? skipped : undefined;
}
