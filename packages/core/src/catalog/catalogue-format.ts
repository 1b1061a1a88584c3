import { isRecord } from '../json/is-record.ts';
import { parseLossless, serializeLossless } from '../json/lossless.ts';
import { compactText, memberSlice } from '../json/scan.ts';
import type { CatalogueDocument } from './catalogue-document.ts';
import type { EntryKind, RawEntry } from './entry.ts';
import { convertNative } from './native-format.ts';

/** The file formats a catalogue comes in. */
export type CatalogueFormat =
  /** `{version, meta, data: {servers, skills, plugins}}`, the current ToolHive file. */
  | 'registry-file'
  /** `{servers: {name: {image}}, remote_servers: {name: {url}}}`, the older ToolHive file. */
  | 'toolhive-native'
  /** `{servers: [{server, _meta}], metadata}`, an answer of the MCP Registry API v0.1; `skills` and `plugins` may stand beside. */
  | 'official-list'
  /** An array of server documents or of `{server, _meta}`. */
  | 'server-array'
  /** One server document. */
  | 'server-json';

function described(value: unknown): string {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'an array';
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`;
}

function named(keys: readonly string[]): string {
  const shown = keys.slice(0, 8).map((key) => `"${key.slice(0, 40)}"`);
  return keys.length > shown.length ? `${shown.join(', ')}, …` : shown.join(', ');
}

/**
 * Tells the formats apart by their shape alone, or says what was found instead (`{ found: 'an object with "a", "b"' }`).
 */
export function detectFormat(value: unknown): CatalogueFormat | { readonly found: string } {
  if (Array.isArray(value)) return 'server-array';
  if (!isRecord(value)) return { found: described(value) };
  const { data, servers } = value;
  if (isRecord(data)) {
    for (const key of ['servers', 'skills', 'plugins']) {
      const list = data[key];
      if (list !== undefined && list !== null && !Array.isArray(list)) {
        return { found: `${described(list)} in "data.${key}" where an array belongs` };
      }
      if (Array.isArray(list)) return 'registry-file';
    }
    return { found: `"data" without "servers", "skills" or "plugins"` };
  }
  if (data !== undefined && servers === undefined) return { found: `${described(data)} in "data"` };
  if (Array.isArray(servers)) return 'official-list';
  if (isRecord(servers) || isRecord(value['remote_servers']) || Array.isArray(value['groups'])) {
    return 'toolhive-native';
  }
  if (servers !== undefined) return { found: `${described(servers)} in "servers"` };
  if (typeof value['name'] === 'string') return 'server-json';
  const keys = Object.keys(value);
  return { found: keys.length === 0 ? 'an empty object' : `an object with ${named(keys)}` };
}

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
  return isRecord(value) && Object.hasOwn(value, key) ? value[key] : undefined;
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
