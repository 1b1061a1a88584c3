import type { SyncStatus } from '../../../store/rows.ts';

/** How a source is doing, (docs/behaviour/registry.md#source-status); members without a value are left out. */
export function syncStatusInfo(status: SyncStatus): object {
  const { phase, message, attemptCount, changed, counts } = status;
  return {
    phase,
    message,
    ...present({
      lastSyncTime: status.lastSync,
      lastAttempt: status.lastAttempt,
      lastSuccessTime: status.lastSuccess,
      nextSyncTime: status.nextSync,
      hash: status.contentHash,
    }),
    attemptCount,
    changed,
    serverCount: counts.server,
    skillCount: counts.skill,
    pluginCount: counts.plugin,
    ...skippedOf(status.report),
  };
}

function present(members: Readonly<Record<string, string | null>>): object {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== null));
}

/** What the last good data left out. The report is written by the synchronisation, which may be of another version. */
function skippedOf(report: string | null): object {
  const value: unknown = report === null ? null : JSON.parse(report);
  const skipped: unknown =
    typeof value === 'object' && value !== null ? Reflect.get(value, 'skipped') : undefined;
  return Array.isArray(skipped) && skipped.length > 0 ? { skipped } : {};
}
