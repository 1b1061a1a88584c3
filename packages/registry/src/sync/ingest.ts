import type { CatalogueFormat } from '@skep/core/catalog/catalogue-format.ts';
import type { Entry } from '@skep/core/catalog/entry.ts';
import { readCatalogueAs, type Catalogue, type Skipped } from '@skep/core/catalog/registry-file.ts';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { NO_CLAIMS, type ClaimSet } from '../access/claim-set.ts';
import { officialText } from '../engine/kinds.ts';
import type { EntryIdentity, EntryKind, NewEntry, NewVersion } from '../store/rows.ts';
import { DEFAULT_LIMITS, type Limits } from '../shape/limits.ts';
import type { FilterConfig } from '../sources/filter/filter-shape.ts';
import { compileFilter } from '../sources/filter/filter.ts';
import type { SourceFormat } from '../sources/kind.ts';

/** What `format` admits. */
const FORMATS: Readonly<Record<SourceFormat, readonly CatalogueFormat[]>> = {
  toolhive: ['toolhive-native', 'registry-file'],
  upstream: ['registry-file', 'official-list', 'server-array', 'server-json'],
};

/** Bytes of a catalogue and how to read them. Plain data: it may travel to another thread. */
export interface IngestInput {
  readonly bytes: Uint8Array;
  /** What to call the catalogue in messages. */
  readonly label: string;
  readonly format?: SourceFormat | undefined;
  /** Claims that every entry inherits from its source. */
  readonly claims?: ClaimSet;
  /** What to take of it; absent means everything. */
  readonly filter?: FilterConfig | undefined;
  /** Default: the default ones. */
  readonly limits?: Limits;
  /** A list of another registry may be empty; a file without entries is a mistake. */
  readonly mayBeEmpty?: boolean;
}

/** How many entries (names, not versions) of each kind. */
export type EntryCounts = Readonly<Record<EntryKind, number>>;

/** What the reading left out or changed; kept with the source's state and shown by `validate`. */
export interface IngestReport {
  readonly format: CatalogueFormat;
  readonly entries: EntryCounts;
  readonly versions: EntryCounts;
  /** The first 50. */
  readonly skipped: readonly Skipped[];
  readonly skippedTotal: number;
  /** Duplicates that gave way to a later entry. */
  readonly replaced: number;
  readonly warnings: readonly string[];
  /** Versions that the filter left out. */
  readonly filtered: number;
}

export interface Ingested {
  readonly entries: readonly NewEntry[];
  readonly report: IngestReport;
}

/** Reads a catalogue; a function so that the caller chooses the thread. */
export type Ingest = (input: IngestInput, signal: AbortSignal) => Promise<Ingested>;

/**
 * Turns a catalogue in any known format into what the store keeps. Fails with the `catalog/…` codes of readCatalogue,
 * and with `catalog/wrong-shape` when the format is not the one the configuration asks for.
 */
export function ingest(input: IngestInput): Ingested {
  const { label, format, claims = NO_CLAIMS } = input;
  const catalogue = catalogueOf(input);
  if (format !== undefined && !FORMATS[format].includes(catalogue.format)) {
    throw new SkepError('catalog/wrong-shape', {
      message: `"${label}" is a ${catalogue.format} file, which "format: ${format}" does not take`,
      hint: 'remove the key "format" to accept every format',
    });
  }
  const kept = catalogue.entries.filter((entry) => entry !== undefined);
  const entries = grouped(kept, claims);
  const filtered = catalogue.entries.length - kept.length;
  return { entries, report: reportOf({ ...catalogue, entries: kept }, entries, filtered) };
}

/** One version of an entry, without the decoded document. */
interface KeptVersion extends EntryIdentity {
  readonly content: NewVersion;
}

/** Versions that the filter leaves out are undefined. */
type KeptCatalogue = Catalogue<KeptVersion | undefined>;

const EMPTY: KeptCatalogue = {
  format: 'official-list',
  entries: [],
  skipped: [],
  skippedTotal: 0,
  replaced: 0,
  warnings: [],
};

function catalogueOf(input: IngestInput): KeptCatalogue {
  const { bytes, label, mayBeEmpty = false, limits = DEFAULT_LIMITS } = input;
  const wanted = input.filter === undefined ? () => true : compileFilter(input.filter);
  try {
    return readCatalogueAs(
      bytes,
      {
        label,
        refuse: (entry) => sizeFault(entry, limits),
        maxInvalidShare: limits.maxInvalidShare,
        maxBytes: limits.maxCatalogueSize,
      },
      (entry) => (wanted(entry) ? keptVersion(entry) : undefined),
    );
  } catch (error) {
    if (mayBeEmpty && error instanceof SkepError && error.code === 'catalog/empty') return EMPTY;
    throw error;
  }
}

/** A version as it is stored. */
export function keptVersion(entry: Entry): KeptVersion {
  const namespace = entry.kind === 'server' ? '' : entry.namespace;
  return { kind: entry.kind, namespace, name: entry.name, content: versionOf(entry) };
}

function grouped(versions: readonly KeptVersion[], claims: ClaimSet): NewEntry[] {
  const groups = new Map<string, NewEntry & { readonly versions: NewVersion[] }>();
  for (const { kind, namespace, name, content } of versions) {
    const key = JSON.stringify([kind, namespace, name]);
    const group = groups.get(key);
    if (group === undefined) groups.set(key, { kind, namespace, name, claims, versions: [content] });
    else group.versions.push(content);
  }
  return [...groups.values()];
}

function versionOf(entry: Entry): NewVersion {
  return {
    version: entry.version,
    title: entry.document.title ?? null,
    description: entry.document.description,
    document: entry.json,
    official: officialText(entry),
  };
}

function reportOf(
  catalogue: Catalogue<KeptVersion>,
  entries: readonly NewEntry[],
  filtered: number,
): IngestReport {
  const { format, skipped, skippedTotal, replaced, warnings } = catalogue;
  return {
    format,
    entries: countKinds(entries),
    versions: countKinds(catalogue.entries),
    skipped,
    skippedTotal,
    replaced,
    warnings,
    filtered,
  };
}

function countKinds(items: readonly { readonly kind: EntryKind }[]): EntryCounts {
  const counts = { server: 0, skill: 0, plugin: 0 };
  for (const { kind } of items) counts[kind] += 1;
  return counts;
}

/** Why a version is too large, or undefined. A source leaves it out, the publish doors refuse it. */
export function sizeFault(
  { json, document }: Entry,
  { maxDescriptionSize, maxDocumentSize }: Limits,
): string | undefined {
  const description = Buffer.byteLength(document.description);
  if (description > maxDescriptionSize) return tooLarge('description', description, maxDescriptionSize);
  const bytes = Buffer.byteLength(json);
  return bytes > maxDocumentSize ? tooLarge('document', bytes, maxDocumentSize) : undefined;
}

function tooLarge(what: string, bytes: number, most: number): string {
  return `the ${what} has ${bytes} bytes, at most ${most} are allowed`;
}
