import { isRecord } from '../json/is-record.ts';
import { compactText, memberSlice } from '../json/scan.ts';
import type { CatalogueDocument } from './catalogue-document.ts';
import type { EntryKind, RawEntry } from './entry.ts';

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

/**
 * A candidate, or one that could not even be read that far. `label` names it when it has no name of its own; `start` and
 * `end` are where its bytes stand in the catalogue, where they do.
 */
export type Candidate = { readonly label: string; readonly start?: number; readonly end?: number } & (
  | RawEntry
  | { readonly fault: string }
);

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

/**
 * The candidates of a format with long lists, in file order, each with its exact text; undefined for other formats. Throws
 * `catalog/not-json` where the document turns out to be none.
 */
export function listedEntries(
  format: CatalogueFormat,
  document: CatalogueDocument,
): Generator<Candidate> | undefined {
  const lists = LISTS[format];
  return lists && elementsOf(document, lists);
}

/** The servers of a decoded catalogue as far as they are lists: each is the document, or the element that it stands in. */
export function listedServers(format: CatalogueFormat, value: unknown): readonly unknown[] | undefined {
  const list = LISTS[format]?.find(({ kind }) => kind === 'server');
  const servers = list?.path.reduce(member, value);
  if (!Array.isArray(servers)) return undefined;
  return list?.wrapped === true ? servers.map((one: unknown) => serverWithin(one) ?? one) : servers;
}

/** The server document that an element of a registry's answer wraps. */
export function serverWithin(element: unknown): object | undefined {
  const server = member(element, 'server');
  return typeof server === 'object' && server !== null ? server : undefined;
}

function* elementsOf(document: CatalogueDocument, lists: readonly EntryList[]): Generator<Candidate> {
  const places = lists.map((list) => ({ ...list, at: list.path.reduce(member, document.frame) }));
  document.checkOthers(places.map(({ at }) => at));
  for (const { at, path, kind, wrapped = false } of places) {
    let index = 0;
    for (const element of document.elements(at)) {
      const label = `${path.join('.')}[${index++}]`;
      const server = wrapped ? serverWithin(element.value) : undefined;
      if (server === undefined) {
        yield { label, kind, ...element };
      } else {
        const inner = compactText(memberSlice(element.json, ['server']) ?? '');
        const { start, end } = element;
        yield { label, kind, value: server, ...inner, outerMeta: member(element.value, '_meta'), start, end };
      }
    }
  }
}
