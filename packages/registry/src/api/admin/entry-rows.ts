import type { ClaimValue } from '@skep/auth/claims/claims.ts';
import { shownClaims } from '../../access/stored-claims.ts';
import type { EntryKind, StoredEntry, StoredVersion } from '../../store/rows.ts';
import type { SortKey } from './paging.ts';

type EntryType = 'MCP' | 'SKILL' | 'PLUGIN';

const TYPES: Readonly<Record<EntryKind, EntryType>> = { server: 'MCP', skill: 'SKILL', plugin: 'PLUGIN' };

/** What the entries listings say about an entry (specification §2.6.1). Absent members are left out. */
export interface EntryHead {
  readonly entryType: EntryType;
  readonly namespace?: string;
  readonly name: string;
}

export interface VersionHead {
  readonly version: string;
  readonly title?: string;
  readonly description?: string;
  readonly createdAt: string;
  readonly updatedAt: string;
}

export function entryHead({ kind, namespace, name }: StoredEntry): EntryHead {
  return { entryType: TYPES[kind], ...(namespace === '' ? {} : { namespace }), name };
}

export function versionHead({
  version,
  title,
  description,
  createdAt,
  updatedAt,
}: StoredVersion): VersionHead {
  return {
    version,
    ...(title === null ? {} : { title }),
    ...(description === null ? {} : { description }),
    createdAt,
    updatedAt,
  };
}

/** The member `claims` of a row, absent without claims. */
export function claimsMember({ claims }: StoredEntry): {
  readonly claims?: Readonly<Record<string, ClaimValue>>;
} {
  const shown = shownClaims(claims);
  return shown === undefined ? {} : { claims: shown };
}

/** Type, then namespace, then name. */
export function entryKey({ kind, namespace, name }: StoredEntry): SortKey {
  return [TYPES[kind], namespace, name];
}
