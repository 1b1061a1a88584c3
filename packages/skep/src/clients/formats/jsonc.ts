import { isDeepStrictEqual } from 'node:util';
import { isRecord } from '@skep/core/json/is-record.ts';
import { parseTree, type Node, type ParseError } from 'jsonc-parser';
import {
  eolOf,
  indentAt,
  insertItem,
  removeItem,
  splice,
  type Bracketed,
  type ItemText,
  type Style,
} from './bracketed.ts';
import type { Editor, EntryText } from './editor.ts';

/** JSON with comments and commas at the end of lists, which is what most clients read. */
export const jsonc: Editor = {
  parse(text, { key }) {
    const tree = treeOf(text);
    if (!tree) return undefined;
    const root = valueOf(tree);
    if (!isRecord(root)) throw new TypeError('it does not hold an object');
    return { root, servers: Object.hasOwn(root, key) ? root[key] : undefined };
  },

  set(text, { key }, entry) {
    const style = styleOf(text);
    const tree = treeOf(text);
    if (!tree) return { text: documentOf(key, entry, style), emptied: {} };
    const servers = memberOf(tree, key);
    if (!servers) {
      const emptied = insideIfEmpty(text, tree);
      const added = insertItem(text, itemsOf(tree), member(key, entry, style), style);
      return { text: added, emptied: emptied === undefined ? {} : { root: emptied } };
    }
    const items = itemsOf(servers.value);
    const present = memberOf(servers.value, entry.name);
    if (present) return { text: replace(text, present.value, entry, style) };
    const place = insideIfEmpty(text, servers.value);
    const added = insertItem(text, items, entryText(entry, style), style);
    return { text: added, ...(place !== undefined && { emptied: { place } }) };
  },

  remove(text, { key }, { name, emptied }) {
    const style = styleOf(text);
    const tree = treeOf(text);
    const servers = tree && memberOf(tree, key);
    const present = servers && memberOf(servers.value, name);
    if (!tree || !servers || !present) return text;
    const list = itemsOf(servers.value);
    const { index } = present;
    const cut = removeItem(text, list, { index, emptied: emptied?.place }, style);
    if (list.items.length > 1 || !emptied || emptied.place !== undefined) return cut;
    const again = treeOf(cut);
    const left = again && memberOf(again, key);
    // What somebody wrote there meanwhile stays.
    if (!again || !left || insideIfEmpty(cut, left.value)?.trim() !== '') return cut;
    return removeItem(cut, itemsOf(again), { index: left.index, emptied: emptied.root }, style);
  },
};

/** The text between brackets that hold no item. */
function insideIfEmpty(text: string, node: Node): string | undefined {
  const { open, close, items } = itemsOf(node);
  return items.length === 0 ? text.slice(open, close) : undefined;
}

/** Fails where the text is no JSON, even with comments. */
function treeOf(text: string): Node | undefined {
  if (text.trim() === '') return undefined;
  const errors: ParseError[] = [];
  const tree = parseTree(text, errors, { allowTrailingComma: true });
  const [first] = errors;
  if (first) throw new SyntaxError(`it is not valid JSON at line ${lineAt(text, first.offset)}`);
  return tree;
}

const lineAt = (text: string, offset: number): number => text.slice(0, offset).split('\n').length;

/** The library's own function would take a member `__proto__` for the prototype. */
function valueOf(node: Node): unknown {
  const children = node.children ?? [];
  if (node.type === 'array') return children.map(valueOf);
  if (node.type !== 'object') return node.value;
  const entries = children.map(({ children: [name, value] = [] }) => [name?.value, value && valueOf(value)]);
  if (new Set(entries.map(([name]) => name)).size < entries.length)
    throw new TypeError('a name stands in it twice');
  return Object.fromEntries(entries);
}

function memberOf(node: Node, name: string): { readonly value: Node; readonly index: number } | undefined {
  const children = node.children ?? [];
  const index = children.findIndex((one) => one.children?.[0]?.value === name);
  const value = children[index]?.children?.[1];
  return value && { value, index };
}

function itemsOf({ offset, length, children = [] }: Node): Bracketed {
  const items = children.map((one) => ({ start: one.offset, end: one.offset + one.length }));
  return { open: offset + 1, close: offset + length - 1, items };
}

function styleOf(text: string): Style {
  const unit = /\n(\t| {1,8})(?=\S)/.exec(text)?.[1] ?? '  ';
  return { eol: eolOf(text), unit, comment: /\/\/[^\r\n]*|\/\*[\s\S]*?\*\//y };
}

/** A list of texts, which people write on one line. */
const WORDS = /\[\n\s*((?:"(?:[^"\\\n]|\\.)*",\n\s*)*"(?:[^"\\\n]|\\.)*")\n\s*\]/g;

function jsonText(value: unknown, indent: string | undefined, { eol, unit }: Style): string {
  if (indent === undefined) return JSON.stringify(value);
  return JSON.stringify(value, null, unit)
    .replaceAll(WORDS, (_, words: string) => `[${words.replaceAll(/\n\s*/g, ' ')}]`)
    .replaceAll('\n', eol + indent);
}

const entryText =
  ({ name, value }: EntryText, style: Style): ItemText =>
  (indent) =>
    `${JSON.stringify(name)}:${indent === undefined ? '' : ' '}${jsonText(value, indent, style)}`;

/** The member that holds the servers, with its first entry. */
const member =
  (key: string, { name, value }: EntryText, style: Style): ItemText =>
  (indent) =>
    entryText({ name: key, value: Object.fromEntries([[name, value]]) }, style)(indent);

function documentOf(key: string, entry: EntryText, style: Style): string {
  return `{${style.eol}${style.unit}${member(key, entry, style)(style.unit)}${style.eol}}${style.eol}`;
}

/** Where the same members stay, only their values are written anew, so that comments between them stay. */
function replace(text: string, node: Node, { value }: EntryText, style: Style): string {
  const before = valueOf(node);
  const names = isRecord(before) ? Object.keys(before).toSorted() : [];
  if (!isDeepStrictEqual(names, Object.keys(value).toSorted())) {
    const isInline = !text.slice(node.offset, node.offset + node.length).includes('\n');
    const indent = isInline ? undefined : indentAt(text, node.offset);
    return splice(text, node.offset, node.offset + node.length, jsonText(value, indent, style));
  }
  return (node.children ?? []).toReversed().reduce((rest, { children: [name, present] = [] }) => {
    const wanted = value[String(name?.value)];
    if (!present || isDeepStrictEqual(valueOf(present), wanted)) return rest;
    const indent = indentAt(text, present.offset);
    return splice(rest, present.offset, present.offset + present.length, jsonText(wanted, indent, style));
  }, text);
}
