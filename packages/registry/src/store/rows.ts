import type { CreationType } from '../access/admin-scope.ts';
import type { ClaimSet } from '../access/claim-set.ts';

/** What the store keeps. Times are RFC 3339 UTC, documents and settings JSON text, claims canonical text. */

export type EntryKind = 'server' | 'skill' | 'plugin';
export type PerKind<T> = Readonly<Record<EntryKind, T>>;

/** A value for each kind, made by the function. */
export function perKind<T>(of: (kind: EntryKind) => T): PerKind<T> {
  return { server: of('server'), skill: of('skill'), plugin: of('plugin') };
}

/** The kinds of source, and how they get their entries; the row of each is in `sources/kinds.ts`. */
const ENTRIES_OF = {
  git: 'synchronised',
  api: 'synchronised',
  file: 'synchronised',
  managed: 'published',
  kubernetes: 'watched',
} as const;

export type SourceKind = keyof typeof ENTRIES_OF;

export const SOURCE_KINDS: readonly SourceKind[] = Object.keys(ENTRIES_OF).filter(isSourceKind);

function isSourceKind(text: string): text is SourceKind {
  return text in ENTRIES_OF;
}

/** Whether entries of the kind come from synchronisations, and so take their claims from the source. */
export function isSynced(kind: SourceKind): boolean {
  return ENTRIES_OF[kind] === 'synchronised';
}

/** Whether entries of one kind mean nothing to the other, since they are got in another way. */
export function gainsOtherwise(before: SourceKind, kind: SourceKind): boolean {
  return ENTRIES_OF[before] !== ENTRIES_OF[kind];
}

/** Whether entries of the kind come from a place that tells what changes. */
export function isWatched(kind: SourceKind): boolean {
  return ENTRIES_OF[kind] === 'watched';
}

/** One version as a source or publisher gave it. `document` is kept byte for byte. */
export interface NewVersion {
  readonly version: string;
  readonly title: string | null;
  readonly description: string | null;
  readonly document: string;
  /** The official block of the source, where it had one. */
  readonly official: string | null;
}

/** Identity of an entry within its source. Servers have an empty namespace: theirs is part of the name. */
export interface EntryIdentity {
  readonly kind: EntryKind;
  readonly namespace: string;
  readonly name: string;
}

export interface NewEntry extends EntryIdentity {
  readonly claims: ClaimSet;
  readonly versions: readonly NewVersion[];
}

/** When the store first saw the version, and when its content last changed. */
export interface StoredVersion extends NewVersion {
  readonly createdAt: string;
  readonly updatedAt: string;
}

export interface StoredEntry extends EntryIdentity {
  readonly claims: ClaimSet;
  readonly versions: readonly StoredVersion[];
}

/** What listings tell of a version: all but its documents, which may be large. */
export type VersionFacts = Omit<StoredVersion, 'document' | 'official'>;

export interface ListedEntry extends EntryIdentity {
  readonly claims: ClaimSet;
  readonly versions: readonly VersionFacts[];
}

/** A version beside its entry, as a row of both has it. */
export type WithEntry<Version> = EntryIdentity & { readonly claims: ClaimSet } & Version;

export type ListedVersion = WithEntry<VersionFacts>;

/** What decides about a source, apart from its name; a PUT or the configuration file replaces all of it. */
export interface SourceSettings {
  readonly kind: SourceKind;
  /** Members of the kind's own block as JSON text; `{}` for a managed source. */
  readonly config: string;
  readonly format: string | null;
  /** JSON text. */
  readonly filter: string | null;
  /** Milliseconds between synchronisations; null where there are none. */
  readonly interval: number | null;
  readonly claims: ClaimSet;
}

export interface NamedSource extends SourceSettings {
  readonly name: string;
}

export interface StoredSource extends NamedSource {
  readonly creationType: CreationType;
  /** Left the file, but a registry made through the API still names it: it is served, and no longer synchronised. */
  readonly orphaned: boolean;
  readonly createdAt: string;
  readonly updatedAt: string;
}

export interface RegistrySettings {
  /** Names in order of priority, highest first; at least one, each once. */
  readonly sources: readonly string[];
  readonly claims: ClaimSet;
}

export interface NamedRegistry extends RegistrySettings {
  readonly name: string;
}

export interface StoredRegistry extends NamedRegistry {
  readonly creationType: CreationType;
  readonly createdAt: string;
  readonly updatedAt: string;
}

/** How a source is doing (docs/behaviour/registry.md#source-status). */
export interface SyncStatus {
  readonly phase: 'syncing' | 'complete' | 'failed';
  readonly message: string;
  /** Start of the last attempt. */
  readonly lastAttempt: string | null;
  /** End of the last attempt, successful or not. */
  readonly lastSync: string | null;
  readonly lastSuccess: string | null;
  readonly nextSync: string | null;
  /** Consecutive failures; 0 after a success. */
  readonly attemptCount: number;
  /** Whether the last success brought something new. */
  readonly changed: boolean;
  /** Entries of the last good data, after the filter. */
  readonly counts: Readonly<Record<EntryKind, number>>;
  /** Hash of everything the entries were made from; null until the first success. */
  readonly contentHash: string | null;
  readonly filterHash: string | null;
  /** What the last good data left out or replaced; JSON text. */
  readonly report: string | null;
}

/** The identity alone, of something that has more members. */
export function identityOf({ kind, namespace, name }: EntryIdentity): EntryIdentity {
  return { kind, namespace, name };
}

/** Equal texts are the same entry within a source. */
export function identityKey({ kind, namespace, name }: EntryIdentity): string {
  return JSON.stringify([kind, namespace, name]);
}
