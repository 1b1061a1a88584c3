import type { ClaimSet } from '../access/claim-set.ts';
import type { Limits } from '../shape/limits.ts';
import type {
  EntryIdentity,
  EntryKind,
  NamedRegistry,
  NewVersion,
  StoredRegistry,
  StoredSource,
  StoredVersion,
} from './rows.ts';

/**
 * Decisions are made inside the transaction that acts on them, with the rows locked: what a decision has seen is still
 * true when the write commits. A decision refuses by throwing (`enforce(decidePublish(…))`), which rolls the write back.
 * It may be asked more than once for one write, so it must not do anything else; it cannot wait for anything either.
 */

/** An entry of the managed source as it stands. */
export interface ExistingEntry extends EntryIdentity {
  readonly claims: ClaimSet;
  /** In no particular order. */
  readonly versions: readonly string[];
}

/** Which entry of the managed source. Without a namespace: any, for callers who gave a bare skill name. */
export interface EntryAddress {
  readonly kind: EntryKind;
  readonly namespace?: string;
  readonly name: string;
  /** The registry in which the caller named it, if any: decisions see it as it stands. */
  readonly registry?: string | undefined;
}

/** The managed source, as far as decisions ask. */
export type ManagedSource = Pick<StoredSource, 'name' | 'claims'> & { readonly kind: 'managed' };

export interface PublishFacts {
  /** Undefined where there is none, which the decision must refuse. */
  readonly target: ManagedSource | undefined;
  readonly entry: ExistingEntry | undefined;
  /** The one of the request, if it exists; its sources in no particular order. */
  readonly registry: NamedRegistry | undefined;
}

export type DecideOnPublish = (facts: PublishFacts) => void;

export interface PublishRequest extends EntryIdentity {
  /** The registry that the caller publishes to; the decision sees it as it is then. */
  readonly registry?: string | undefined;
  readonly claims: ClaimSet;
  readonly version: NewVersion;
  /** How much the entry may hold with it: each write about an entry reads all of it while others wait. */
  readonly limits?: Limits;
  /** The reader's memory has no such entry. Only saves time: the commit finds out. */
  readonly seemsNew?: boolean;
}

export interface PublishedVersion extends EntryIdentity {
  readonly source: string;
  readonly claims: ClaimSet;
  readonly version: StoredVersion;
  /** All versions of the entry, this one included, in no particular order. */
  readonly versions: readonly string[];
}

/** Picks the entry that is meant, or refuses: none found, more than one, or not allowed. */
export type ChooseEntry = (
  found: readonly ExistingEntry[],
  facts: Omit<PublishFacts, 'entry'>,
) => ExistingEntry;

/** The same by what was found alone. */
export type PickEntry = (found: readonly ExistingEntry[]) => ExistingEntry;

/** What the registry itself says about versions, beside their documents. */
export interface MarkRequest {
  readonly address: EntryAddress;
  /** All versions of the entry when absent. */
  readonly version?: string | undefined;
  readonly mark: {
    readonly status: 'active' | 'deprecated' | 'deleted';
    readonly message?: string | undefined;
  };
}

export interface MarkedVersions {
  readonly source: string;
  /** Those that were marked, as they are now. */
  readonly marked: readonly StoredVersion[];
  /** All versions of the entry, in no particular order. */
  readonly versions: readonly string[];
}

export interface SourceFacts {
  readonly existing: StoredSource | undefined;
  /** Name of the managed source, whichever it is: there is at most one. */
  readonly managed: string | undefined;
}

export type DecideOnSource = (facts: SourceFacts) => void;

export interface SourceDeletionFacts {
  readonly existing: StoredSource | undefined;
  /** Names of the registries that list it, ascending; the store refuses what the decision lets pass. */
  readonly referencedBy: readonly string[];
}

export interface RegistryFacts {
  readonly existing: StoredRegistry | undefined;
  /** Those of the named sources that exist; the store refuses what the decision lets pass. */
  readonly sources: ReadonlyMap<string, StoredSource>;
}

export type DecideOnRegistry = (facts: RegistryFacts) => void;
