import { hash } from 'node:crypto';
import { setImmediate } from 'node:timers/promises';
import {
  identityOf,
  type EntryIdentity,
  type NewEntry,
  type NewVersion,
  type StoredEntry,
  type StoredVersion,
} from '../rows.ts';

/** What is known of a stored version without reading its document. */
export interface VersionHead extends EntryIdentity {
  readonly version: string;
  readonly claims: string;
  readonly digest: string;
  readonly createdAt: string;
  readonly updatedAt: string;
}

export interface VersionWrite extends EntryIdentity {
  readonly content: NewVersion;
  readonly digest: string;
  readonly createdAt: string;
  readonly updatedAt: string;
}

export interface EntryDiff {
  /** Versions that are new or whose content changed. */
  readonly write: readonly VersionWrite[];
  /** Entries that are new or whose claims changed. */
  readonly claim: readonly (EntryIdentity & { readonly claims: string })[];
  readonly removeVersions: readonly VersionHead[];
  readonly removeEntries: readonly EntryIdentity[];
  /** The state after all of it. */
  readonly after: readonly StoredEntry[];
}

/** A few milliseconds of work. */
const VERSIONS_AT_ONCE = 500;

/**
 * What has to be written so that `heads` becomes `entries`. `now` is the time new and changed versions get. Between two
 * parts of the work other requests have their turn.
 */
export async function diffEntries(
  heads: readonly VersionHead[],
  entries: readonly NewEntry[],
  now: string,
): Promise<EntryDiff> {
  const before = new Map(heads.map((head) => [keyOf(head, head.version), head]));
  const claimsBefore = new Map(heads.map((head) => [keyOf(head), head.claims]));
  const write: VersionWrite[] = [];
  const claim: (EntryIdentity & { claims: string })[] = [];
  const after: StoredEntry[] = [];
  let done = 0;
  for (const { versions, ...entry } of entries) {
    const entryKey = keyOf(entry);
    if (claimsBefore.get(entryKey) !== entry.claims) claim.push(entry);
    claimsBefore.delete(entryKey);
    const stored: StoredVersion[] = [];
    for (const content of versions) {
      const key = keyOf(entry, content.version);
      const head = before.get(key);
      before.delete(key);
      const digest = digestOf(content);
      const times = timesOf(head, digest, now);
      if (head?.digest !== digest) write.push({ ...identityOf(entry), content, digest, ...times });
      stored.push({ ...content, ...times });
      done += 1;
      if (done % VERSIONS_AT_ONCE === 0) await setImmediate();
    }
    after.push({ ...entry, versions: stored });
  }
  const gone = new Set(claimsBefore.keys());
  const removeVersions = [...before.values()].filter((head) => !gone.has(keyOf(head)));
  return { write, claim, removeVersions, removeEntries: goneEntries(heads, gone), after };
}

function goneEntries(heads: readonly VersionHead[], gone: ReadonlySet<string>): EntryIdentity[] {
  return [...new Map(heads.map((head) => [keyOf(head), identityOf(head)]))]
    .filter(([key]) => gone.has(key))
    .map(([, entry]) => entry);
}

function timesOf(
  head: VersionHead | undefined,
  digest: string,
  now: string,
): { readonly createdAt: string; readonly updatedAt: string } {
  return {
    createdAt: head?.createdAt ?? now,
    updatedAt: head?.digest === digest ? head.updatedAt : now,
  };
}

function keyOf(entry: EntryIdentity, version?: string): string {
  return JSON.stringify([entry.kind, entry.namespace, entry.name, version]);
}

export function digestOf(content: NewVersion): string {
  return hash('sha256', `${content.document}\n${content.official ?? ''}`, 'base64url');
}
