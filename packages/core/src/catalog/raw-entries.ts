import { parseLossless, serializeLossless } from '../json/lossless.ts';
import type { CatalogueDocument } from './catalogue-document.ts';
import type { RawEntry } from './decode-entry.ts';
import type { CatalogueFormat } from './detect-format.ts';
import type { EntryKind } from './entry.ts';
import { compactText, memberSlice } from '../json/scan.ts';
import { convertNative } from './native-format.ts';

/** A candidate, or one that could not even be read that far. `label` names it when it has no name of its own. */
export type Candidate = { readonly label: string } & (RawEntry | { readonly fault: string });

interface EntryList {
  readonly path: readonly string[];
  readonly kind: EntryKind;
  /** Elements may be `{server, _meta}`; others are server documents themselves. */
  readonly wrapped?: boolean;
}

/** Where the formats with long lists have them, in the order in which they are read. */
const LISTS: Readonly<Partial<Record<CatalogueFormat, readonly EntryList[]>>> = {
  'registry-file': [
    { path: ['data', 'servers'], kind: 'server' },
    { path: ['data', 'skills'], kind: 'skill' },
    { path: ['data', 'plugins'], kind: 'plugin' },
  ],
  'official-list': [
    { path: ['servers'], kind: 'server', wrapped: true },
    { path: ['skills'], kind: 'skill' },
    { path: ['plugins'], kind: 'plugin' },
  ],
  'server-array': [{ path: [], kind: 'server', wrapped: true }],
};

function member(value: unknown, key: string): unknown {
  return typeof value === 'object' && value !== null && Object.hasOwn(value, key)
    ? Reflect.get(value, key)
    : undefined;
}

function* listed(document: CatalogueDocument, lists: readonly EntryList[]): Generator<Candidate> {
  const places = lists.map((list) => ({ ...list, at: list.path.reduce(member, document.frame) }));
  document.checkOthers(places.map(({ at }) => at));
  for (const { at, path, kind, wrapped = false } of places) {
    let index = 0;
    for (const element of document.elements(at)) {
      const label = `${path.join('.')}[${index++}]`;
      const server = wrapped ? member(element.value, 'server') : undefined;
      if (typeof server !== 'object' || server === null) {
        yield { label, kind, ...element };
      } else {
        const inner = compactText(memberSlice(element.json, ['server']) ?? '');
        yield { label, kind, value: server, ...inner, outerMeta: member(element.value, '_meta') };
      }
    }
  }
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
export function* rawEntries(format: CatalogueFormat, document: CatalogueDocument): Generator<Candidate> {
  const lists = LISTS[format];
  if (lists !== undefined) {
    yield* listed(document, lists);
    return;
  }
  const { value, json } = document.whole();
  if (format === 'toolhive-native') yield* native(json);
  else yield { label: 'the document', kind: 'server', value, ...compactText(json) };
}
