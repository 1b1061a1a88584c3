import { formatDuration } from '@skep/core/time/duration.ts';
import { shownClaims } from '../../../access/claim-set.ts';
import { withoutUrlSecrets } from '../../../sources/url-secrets.ts';
import type { StoredSource, SyncStatus } from '../../../store/rows.ts';
import { syncStatusInfo } from './sync-status-info.ts';

/** How a source is shown (docs/behaviour/registry.md#sources-over-the-api); members without a value are left out. */
export function sourceInfo(source: StoredSource, status: SyncStatus | undefined): object {
  const { name, kind, creationType, filter, interval, orphaned, createdAt, updatedAt } = source;
  const claims = shownClaims(source.claims);
  return {
    name,
    type: kind,
    creationType,
    sourceType: kind,
    ...(source.format === null ? {} : { format: source.format }),
    sourceConfig: shownConfig(source.config),
    ...(filter === null ? {} : { filterConfig: jsonValue(filter) }),
    ...(interval === null ? {} : { syncSchedule: formatDuration(interval) }),
    ...(claims === undefined ? {} : { claims }),
    ...(status === undefined ? {} : { syncStatus: syncStatusInfo(status) }),
    ...(orphaned ? { orphaned } : {}),
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
  if (typeof value !== 'object' || value === null) return {};
  return Object.fromEntries(
    Object.entries(value).map(([key, member]): [string, unknown] => {
      if (key === 'data' && typeof member === 'string') return ['dataBytes', Buffer.byteLength(member)];
      return [key, member];
    }),
  );
}

function jsonValue(text: string): unknown {
  return JSON.parse(text);
}
