import { limitedField } from '../audit/audit-event.ts';
import { SkepError } from '../errors/skep-error.ts';
import { isRecord } from '../json/is-record.ts';
import { parseLossless, serializeLossless } from '../json/lossless.ts';
import { compactText } from '../json/scan.ts';
import { openDocument, type CatalogueDocument } from './catalogue-document.ts';
import { catalogueBytes, type TextOptions } from './catalogue-text.ts';
import { detectFormat, listedEntries, type CatalogueFormat, type Candidate } from './catalogue-format.ts';
import { entryKey, decodeEntry, type Entry, type Decoded } from './entry.ts';
import { convertNative } from './native-format.ts';

/** An entry that was left out, and why. `name` is its position where it has no readable name. */
export interface Skipped {
  readonly name: string;
  readonly version?: string;
  readonly reason: string;
}

/** What a catalogue file holds. */
export interface Catalogue<Kept = Entry> {
  readonly format: CatalogueFormat;
  /** In file order, one per kind, name and version. */
  readonly entries: readonly Kept[];
  /** The first 50 left out; `skippedTotal` counts all. */
  readonly skipped: readonly Skipped[];
  readonly skippedTotal: number;
  /** How many entries gave way to a later one of the same kind, name and version. */
  readonly replaced: number;
  /** Oddities that lose nothing but deserve a look: replaced duplicates, an incomplete page, missing header members. */
  readonly warnings: readonly string[];
}

export interface ReadOptions extends TextOptions {
  /** Share of invalid entries, 0 to 1, above which the whole catalogue is refused. Default 0.5. */
  readonly maxInvalidShare?: number;
  /** Why a valid entry is left out all the same, or undefined. */
  readonly refuse?: (entry: Entry) => string | undefined;
}

const SHOWN = 50;
/** Four times what fits into the largest catalogue at the usual length of an entry; saying what is wrong with each takes time. */
const MAX_ENTRIES = 200_000;

function named(candidate: Candidate, reason: string): Skipped {
  const value = 'value' in candidate && isRecord(candidate.value) ? candidate.value : {};
  const [name = candidate.label, version] = ['name', 'version'].map((key) => {
    const found = value[key];
    return typeof found === 'string' && found !== '' ? found.slice(0, 200) : undefined;
  });
  return { name, ...(version === undefined ? {} : { version }), reason: limitedField(reason) };
}

function describeSkipped({ name, version, reason }: Skipped): string {
  return `"${version === undefined ? name : `${name}@${version}`}": ${reason}`;
}

/** Remarks about the file around its entries. */
function headerWarnings(format: CatalogueFormat, value: unknown): string[] {
  if (!isRecord(value)) return [];
  const { metadata } = value;
  const remarks: [boolean, string][] = [
    [format === 'registry-file' && !('version' in value), 'the file has no "version"'],
    [format === 'registry-file' && !('meta' in value), 'the file has no "meta.last_updated"'],
    [
      format === 'official-list' && isRecord(metadata) && Boolean(metadata['nextCursor']),
      'the file is one page of a longer list ("metadata.nextCursor" is set)',
    ],
  ];
  return remarks.flatMap(([holds, remark]) => (holds ? [remark] : []));
}

function unlessRefused(decoded: Decoded, refuse: (entry: Entry) => string | undefined): Decoded {
  const fault = 'entry' in decoded ? refuse(decoded.entry) : undefined;
  return fault === undefined ? decoded : { fault };
}

function formatOf(document: CatalogueDocument, label: string): CatalogueFormat {
  const format = detectFormat(document.frame);
  if (typeof format === 'string') return format;
  document.checkOthers([]);
  throw new SkepError('catalog/wrong-shape', {
    message: `"${label}" is no catalogue: found ${format.found}`,
  });
}

/** Converted documents are new text, so their numbers have to come from a parse that keeps digits. */
function* native(text: string): Generator<Candidate> {
  const value = parseLossless(text, { maxBytes: Number.MAX_SAFE_INTEGER });
  if (typeof value !== 'object' || value === null) return;
  for (const converted of convertNative(value)) {
    if ('fault' in converted) yield { label: converted.key, fault: converted.fault };
    else {
      const { key, document } = converted;
      const json = serializeLossless(document);
      yield { label: key, kind: 'server', value: JSON.parse(json), ...compactText(json) };
    }
  }
}

/**
 * All candidates of a catalogue in file order, each with its exact text. Throws `catalog/not-json` where the document
 * turns out to be none.
 */
function* rawEntries(format: CatalogueFormat, document: CatalogueDocument): Generator<Candidate> {
  const listed = listedEntries(format, document);
  if (listed !== undefined) {
    yield* listed;
    return;
  }
  const { value, json } = document.whole();
  if (format === 'toolhive-native') yield* native(json);
  else yield { label: 'the document', kind: 'server', value, ...compactText(json) };
}

/**
 * Reads a catalogue in any of the formats of `CatalogueFormat` (docs/behaviour/registry.md#catalogue-formats). Entries
 * that are invalid are left out and reported; of equal entries the last counts. `input` is the file's text or bytes.
 *
 * Throws SkepError: `catalog/too-large`, `catalog/not-json` (with line and column), `catalog/wrong-shape`,
 * `catalog/empty`, `catalog/mostly-invalid`.
 */
export function readCatalogue(input: string | Uint8Array, options: ReadOptions): Catalogue {
  return readCatalogueAs(input, options, (entry) => entry);
}

/** As `readCatalogue`, holding of each entry only what `keep` makes of it: decoded documents take much memory. */
export function readCatalogueAs<Kept>(
  input: string | Uint8Array,
  options: ReadOptions,
  keep: (entry: Entry) => Kept,
): Catalogue<Kept> {
  const { label, maxInvalidShare = 0.5, refuse = () => undefined } = options;
  const document = openDocument(catalogueBytes(input, options), label);
  const format = formatOf(document, label);
  const entries = new Map<string, Kept>();
  const skipped: Skipped[] = [];
  const warnings = headerWarnings(format, document.frame);
  let skippedTotal = 0;
  let total = 0;
  let replaced = 0;
  for (const candidate of rawEntries(format, document)) {
    if (++total > MAX_ENTRIES) {
      const message = `"${label}" holds more than ${MAX_ENTRIES} entries`;
      throw new SkepError('catalog/too-large', { message });
    }
    const decoded = 'fault' in candidate ? candidate : unlessRefused(decodeEntry(candidate), refuse);
    if ('fault' in decoded) {
      skippedTotal++;
      if (skipped.length < SHOWN) skipped.push(named(candidate, decoded.fault));
      continue;
    }
    const key = entryKey(decoded.entry);
    if (entries.has(key) && ++replaced <= SHOWN) {
      const { kind, name, version } = decoded.entry;
      warnings.push(`${kind} "${name}" version "${version}" occurs more than once; the last one counts`);
    }
    entries.set(key, keep(decoded.entry));
  }
  if (total === 0) throw new SkepError('catalog/empty', { message: `"${label}" holds no entries` });
  if (skippedTotal > total * maxInvalidShare) {
    const first = skipped[0] === undefined ? '' : `; the first is ${describeSkipped(skipped[0])}`;
    throw new SkepError('catalog/mostly-invalid', {
      message: `${skippedTotal} of ${total} entries of "${label}" are invalid${first}`,
      detail: { total, skippedTotal, skipped },
    });
  }
  return { format, entries: [...entries.values()], skipped, skippedTotal, replaced, warnings };
}
