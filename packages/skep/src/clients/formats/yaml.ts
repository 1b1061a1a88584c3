import { isRecord } from '@skep/core/json/is-record.ts';
import { type Document, isCollection, isMap, isPair, isScalar, isSeq, parseDocument } from 'yaml';
import type { Node, Pair, ParsedNode, YAMLMap, YAMLSeq } from 'yaml';
import {
  eolOf,
  insertItem,
  removeItem,
  splice,
  type Bracketed,
  type Range,
  type Style,
} from './bracketed.ts';
import { quote, type Editor, type EntryText, type Spot } from './editor.ts';

/** YAML 1.2, one document. Whole lines come and go, so the rest keeps its bytes. */
export const yaml: Editor = {
  parse(text, { key }) {
    const document = documentOf(text);
    const root: unknown = document.toJS();
    if (root === null || root === undefined) return undefined;
    if (!isRecord(root)) throw new TypeError('it does not hold a mapping');
    const servers = Object.hasOwn(root, key) ? root[key] : undefined;
    // A key without a value is how an empty place looks.
    return { root, servers: servers ?? undefined };
  },

  set(text, spot, entry) {
    const present = findEntry(text, spot, entry.name);
    if (present) {
      const { lines, column } = present;
      if (!lines) throw new TypeError('an entry stands in brackets');
      const block = entryLines(spot, entry, column, eolOf(text));
      return { text: splice(text, lines.start, lines.end, block) };
    }
    const { pair, root } = placeOf(text, spot);
    const eol = eolOf(text);
    if (!pair) {
      const column = root ? columnAt(text, startOf(root.items[0]?.key)) : 0;
      const block = placeLines(spot, entry, column, eol);
      return { text: addLines(text, root ? endOf(root) : text.length, block, eol), emptied: {} };
    }
    const servers = pair.value;
    if (isCollection(servers) && servers.items.length > 0) {
      if (servers.flow === true)
        return {
          text: insertItem(text, bracketsOf(text, servers), () => flowText(spot, entry), styleOf(text)),
        };
      const [first] = servers.items;
      const start = startOf(isPair(first) ? first.key : first);
      const column = isSeq(servers) ? dashColumn(text, start) : columnAt(text, start);
      return { text: addLines(text, endOf(servers), entryLines(spot, entry, column, eol), eol) };
    }
    const colon = colonOf(text, pair);
    const isSaid = isRealNode(servers) && !(isScalar(servers) && servers.source === '');
    const end = isSaid ? servers.range[1] : colon;
    const column = columnAt(text, startOf(pair.key)) + 2;
    const emptied = { place: text.slice(colon, end) };
    const rest = splice(text, colon, end, '');
    return { text: addLines(rest, colon, entryLines(spot, entry, column, eol), eol), emptied };
  },

  remove(text, spot, { name, emptied }) {
    const present = findEntry(text, spot, name);
    if (!present) return text;
    const { servers, index, lines } = present;
    if (!lines) return removeItem(text, bracketsOf(text, servers), { index }, styleOf(text));
    if (servers.items.length > 1) return cutLines(text, lines);
    const { pair } = placeOf(text, spot);
    const key = startOf(pair?.key);
    const left = cutLines(text, lines);
    if (emptied && emptied.place === undefined)
      return cutLines(left, { start: lineStart(left, key), end: lineEnd(left, key + 1) });
    const colon = pair ? colonOf(text, pair) : key;
    return splice(left, colon, colon, emptied?.place ?? (isSeq(servers) ? ' []' : ' {}'));
  },
};

function documentOf(text: string): Document.Parsed {
  const document = parseDocument(text, { logLevel: 'error' });
  const [first] = document.errors;
  if (!first) return document;
  const line = first.linePos?.[0].line;
  throw new SyntaxError(`it is not valid YAML${line === undefined ? '' : ` at line ${line}`}`);
}

type Servers = YAMLMap | YAMLSeq;

interface Place {
  readonly root: YAMLMap | undefined;
  /** The key of the servers with its value. */
  readonly pair: Pair | undefined;
}

function placeOf(text: string, { key }: Spot): Place {
  const root = documentOf(text).contents;
  if (!isMap(root)) return { root: undefined, pair: undefined };
  return { root, pair: pairOf(root, key) };
}

const pairOf = (map: YAMLMap, name: string): Pair | undefined =>
  map.items.find(({ key }) => isScalar(key) && key.value === name);

interface Found {
  readonly servers: Servers;
  readonly index: number;
  /** The lines it stands on, with the end of the last one; absent in brackets. */
  readonly lines?: Range;
  readonly column: number;
}

function findEntry(text: string, spot: Spot, name: string): Found | undefined {
  const servers = placeOf(text, spot).pair?.value;
  if (!isMap(servers) && !isSeq(servers)) return undefined;
  const index = isMap(servers)
    ? servers.items.findIndex(({ key }) => isScalar(key) && key.value === name)
    : servers.items.findIndex((one) => isMap(one) && one.get('name') === name);
  const item = servers.items[index];
  if (index === -1 || item === undefined) return undefined;
  const start = startOf(isPair(item) ? item.key : item);
  const column = isSeq(servers) ? dashColumn(text, start) : columnAt(text, start);
  if (servers.flow === true) return { servers, index, column };
  return {
    servers,
    index,
    column,
    lines: { start: lineStart(text, start), end: lineEnd(text, endOf(item)) },
  };
}

function isRealNode(node: unknown): node is ParsedNode {
  return isRecord(node) && Array.isArray(node['range']);
}

const startOf = (node: unknown): number => (isRealNode(node) ? node.range[0] : 0);

/** The end of what a node says, without the comments behind it. */
function endOf(node: unknown): number {
  if (isPair(node))
    return node.value === null ? endOf(node.key) : Math.max(endOf(node.key), endOf(node.value));
  if (isCollection(node) && node.flow !== true && node.items.length > 0) return endOf(node.items.at(-1));
  return isRealNode(node) ? node.range[1] : 0;
}

const colonOf = (text: string, { key }: Pair): number => text.indexOf(':', endOf(key)) + 1;

const lineStart = (text: string, at: number): number => text.lastIndexOf('\n', at - 1) + 1;

/** Behind the end of the line; a block text ends behind its own. */
function lineEnd(text: string, at: number): number {
  if (at > 0 && text[at - 1] === '\n') return at;
  const end = text.indexOf('\n', at);
  return end === -1 ? text.length : end + 1;
}

const columnAt = (text: string, at: number): number => at - lineStart(text, at);

/** Where the dash of a list's item stands. */
function dashColumn(text: string, at: number): number {
  return text.slice(lineStart(text, at), at).indexOf('-');
}

/** Puts lines below the one where `at` stands; a text without a line end at its end stays so. */
function addLines(text: string, at: number, lines: string, eol: string): string {
  const end = lineEnd(text, at);
  if (end === 0 || text[end - 1] === '\n') return splice(text, end, end, lines);
  return text + eol + lines.slice(0, -eol.length);
}

/** The opposite of `addLines`. */
function cutLines(text: string, { start, end }: Range): string {
  if (text[end - 1] === '\n' || start === 0) return splice(text, start, end, '');
  return text.slice(0, start).replace(/\r?\n$/, '');
}

function entryLines({ isList }: Spot, { name, value }: EntryText, column: number, eol: string): string {
  const members = Object.entries(value).map(([member, one]) => `${plainOr(member)}: ${valueText(one)}`);
  const lines = isList
    ? members.map((line, at) => `${at === 0 ? '- ' : '  '}${line}`)
    : [`${plainOr(name)}:`, ...members.map((line) => `  ${line}`)];
  return lines.map((line) => ' '.repeat(column) + line + eol).join('');
}

/** The key of the servers with its first entry. */
function placeLines(spot: Spot, entry: EntryText, column: number, eol: string): string {
  return `${' '.repeat(column)}${plainOr(spot.key)}:${eol}${entryLines(spot, entry, column + 2, eol)}`;
}

/** YAML 1.1 has these for values, and some clients read that. */
const VALUES = /^(?:true|false|null|yes|no|on|off|y|n)$/i;

/** Without quotes where nothing could take it for something else. */
function plainOr(text: string): string {
  const isPlain = /^[A-Za-z][\w./-]*$/.test(text) || /^https?:\/\/[\w./:-]*[\w/]$/.test(text);
  return isPlain && !VALUES.test(text) ? text : quote(text);
}

function valueText(value: unknown): string {
  if (typeof value === 'string') return plainOr(value);
  return Array.isArray(value) ? `[${value.map(valueText).join(', ')}]` : JSON.stringify(value);
}

/** In brackets YAML takes JSON. */
function flowText({ isList }: Spot, { name, value }: EntryText): string {
  return isList ? JSON.stringify(value) : `${JSON.stringify(name)}: ${JSON.stringify(value)}`;
}

function bracketsOf(text: string, servers: Servers): Bracketed {
  const items = servers.items.map((item) => ({
    start: startOf(isPair(item) ? item.key : item),
    end: endOf(item),
  }));
  const end = (servers as unknown as Node).range?.[1] ?? text.length;
  return { open: startOf(servers) + 1, close: end - 1, items };
}

function styleOf(text: string): Style {
  return { eol: eolOf(text), unit: '  ', comment: /(?<=^|[\s,[{])#[^\r\n]*/y };
}
