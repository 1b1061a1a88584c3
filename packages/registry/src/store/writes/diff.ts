import { setImmediate } from 'node:timers/promises';
import {
  identityKey,
  identityOf,
  type EntryIdentity,
  type NewEntry,
  type StoredEntry,
  type StoredVersion,
} from '../rows.ts';
import type { EntryTable, EntryVersionTable } from '../schema/tables.ts';
import { digestOf, versionRow } from './entry-batch.ts';

/** What is known of a stored version without reading its document. */
export type VersionHead = EntryIdentity &
  Pick<EntryTable, 'claims'> &
  Pick<EntryVersionTable, 'version' | 'digest' | 'created_at' | 'updated_at'>;

export interface EntryDiff {
  /** Versions that are new or whose content changed. */
  readonly write: readonly EntryVersionTable[];
  /** Entries that are new or whose claims changed. */
  readonly claim: readonly EntryTable[];
  readonly removeVersions: readonly VersionHead[];
  readonly removeEntries: readonly EntryIdentity[];
  /** The state after all of it. */
  readonly after: readonly StoredEntry[];
}

/** A few milliseconds of work. */
const VERSIONS_AT_ONCE = 500;

/** What makes `entries` of `heads`; new and changed versions get the time `now`. Other requests have turns in between. */
export async function diffEntries(
  source: string,
  heads: readonly VersionHead[],
  entries: readonly NewEntry[],
  now: string,
): Promise<EntryDiff> {
  const before = new Map(heads.map((head) => [versionKey(head, head), head]));
  const gone = new Map(heads.map((head) => [identityKey(head), head]));
  const write: EntryVersionTable[] = [];
  const claim: EntryTable[] = [];
  const after: StoredEntry[] = [];
  let done = 0;
  for (const { versions, ...entry } of entries) {
    const entryKey = identityKey(entry);
    if (gone.get(entryKey)?.claims !== entry.claims)
      claim.push({ source, ...identityOf(entry), claims: entry.claims });
    gone.delete(entryKey);
    const stored: StoredVersion[] = [];
    for (const content of versions) {
      const key = versionKey(entry, content);
      const head = before.get(key);
      before.delete(key);
      const digest = digestOf(content);
      const isSame = head?.digest === digest;
      const version = {
        ...content,
        createdAt: head?.created_at ?? now,
        updatedAt: isSame ? head.updated_at : now,
      };
      if (!isSame) write.push(versionRow(source, entry, version, digest));
      stored.push(version);
      done += 1;
      if (done % VERSIONS_AT_ONCE === 0) await setImmediate();
    }
    after.push({ ...entry, versions: stored });
  }
  const removeVersions = [...before.values()].filter((head) => !gone.has(identityKey(head)));
  return { write, claim, removeVersions, removeEntries: [...gone.values()], after };
}

function versionKey(entry: EntryIdentity, { version }: { readonly version: string }): string {
  return JSON.stringify([entry.kind, entry.namespace, entry.name, version]);
}
