import { isRecord } from '@skep/core/json/is-record.ts';
import { parse, type TomlTable } from 'smol-toml';
import { eolOf, insertItem, removeItem, type Bracketed, type Style } from './bracketed.ts';
import { quote, type Editor, type EntryText, type Spot } from './editor.ts';
import { scanToml, type Statement } from './scan-toml.ts';

/** TOML 1.0. Entries are tables of their own at the end, or items where the servers are a list in brackets. */
export const toml: Editor = {
  parse(text, { key }) {
    const root: TomlTable = parse(text);
    if (Object.keys(root).length === 0 && text.trim() === '') return undefined;
    return { root, servers: Object.hasOwn(root, key) ? root[key] : undefined };
  },

  set(text, spot, entry) {
    const list = bracketsOf(text, spot);
    const style = styleOf(text);
    const index = indexOf(text, spot, entry.name);
    if (index !== undefined) {
      const ranges = list ? [] : blocksOf(text, spot, entry.name, index);
      const [first] = ranges;
      if (list) {
        const item = list.items[index];
        if (!item) throw new TypeError('an entry was not found');
        return { text: text.slice(0, item.start) + inlineTable(entry.value) + text.slice(item.end) };
      }
      if (!first) throw new TypeError('an entry is written in a way that Skep does not edit');
      const without = ranges
        .toReversed()
        .reduce((rest, { start, end }) => rest.slice(0, start) + rest.slice(end), text);
      const block =
        tableText(spot, entry, style) + (text.slice(first.start, first.end).endsWith('\n') ? style.eol : '');
      return { text: without.slice(0, first.start) + block + without.slice(first.start) };
    }
    if (list) {
      const added = insertItem(text, list, () => inlineTable(entry.value), style);
      return {
        text: added,
        ...(list.items.length === 0 && { emptied: { place: text.slice(list.open, list.close) } }),
      };
    }
    return { text: append(text, tableText(spot, entry, style), style.eol) };
  },

  remove(text, spot, { name, emptied }) {
    const index = indexOf(text, spot, name);
    if (index === undefined) return text;
    const list = bracketsOf(text, spot);
    if (list) return removeItem(text, list, { index, emptied: emptied?.place }, styleOf(text));
    return blocksOf(text, spot, name, index)
      .toReversed()
      .reduce((rest, { start, end }) => removeBlock(rest, start, end), text);
  },
};

function styleOf(text: string): Style {
  return { eol: eolOf(text), unit: '  ', comment: /#[^\r\n]*/y };
}

/** Its place among the entries; undefined when there is none of that name. */
function indexOf(text: string, { key, isList }: Spot, name: string): number | undefined {
  const servers = parse(text)[key];
  const index = isList
    ? Array.isArray(servers)
      ? servers.findIndex((one) => isRecord(one) && one['name'] === name)
      : -1
    : isRecord(servers)
      ? Object.keys(servers).indexOf(name)
      : -1;
  return index === -1 ? undefined : index;
}

/** The list of servers, where it stands in brackets. */
function bracketsOf(text: string, { key, isList }: Spot): Bracketed | undefined {
  if (!isList) return undefined;
  return scanToml(text).find(({ kind, path }) => kind === 'pair' && path.length === 1 && path[0] === key)
    ?.list;
}

/** The tables of one entry with those below it, as they stand in the text. */
function blocksOf(text: string, { key, isList }: Spot, name: string, index: number): readonly Block[] {
  const blocks = toBlocks(text, scanToml(text));
  if (!isList) return blocks.filter(({ path }) => path[0] === key && path[1] === name);
  const heads = blocks.flatMap(({ kind, path }, at) =>
    kind === 'list' && path.length === 1 && path[0] === key ? [at] : [],
  );
  const from = heads[index];
  if (from === undefined) return [];
  const until = blocks.findIndex(({ path }, at) => at > from && (path[0] !== key || heads.includes(at)));
  return blocks.slice(from, until === -1 ? undefined : until);
}

interface Block {
  readonly kind: Statement['kind'];
  readonly path: readonly string[];
  readonly start: number;
  /** Behind the line end of its last statement: comments that follow belong to what comes next. */
  readonly end: number;
}

function toBlocks(text: string, statements: readonly Statement[]): readonly Block[] {
  return statements.flatMap(({ kind, path, start }, at) => {
    if (kind === 'pair') return [];
    const next = statements.findIndex((one, other) => other > at && one.kind !== 'pair');
    const last = statements[(next === -1 ? statements.length : next) - 1];
    const line = text.indexOf('\n', last?.end ?? start);
    const from = text.lastIndexOf('\n', start) + 1;
    return [{ kind, path, start: from, end: line === -1 ? text.length : line + 1 }];
  });
}

/** A blank line stands before each table; a file without a line end at its end stays so. */
function append(text: string, block: string, eol: string): string {
  if (text === '') return block + eol;
  return text.endsWith('\n') ? text + eol + block + eol : text + eol + eol + block;
}

/** The opposite of `append`, wherever the table stands. */
function removeBlock(text: string, start: number, end: number): string {
  const eol = eolOf(text);
  const head = text.slice(0, start);
  let cut = start;
  if (head.endsWith(eol + eol) || head === eol) cut -= eol.length;
  if (!text.slice(start, end).endsWith('\n') && head.slice(0, cut).endsWith(eol)) cut -= eol.length;
  return text.slice(0, cut) + text.slice(end);
}

function tableText({ key, isList }: Spot, { name, value }: EntryText, { eol }: Style): string {
  const head = isList ? `[[${keyText(key)}]]` : `[${keyText(key)}.${keyText(name)}]`;
  const lines = Object.entries(value).map(([member, one]) => `${keyText(member)} = ${tomlText(one)}`);
  return [head, ...lines].join(eol);
}

function inlineTable(value: Readonly<Record<string, unknown>>): string {
  const pairs = Object.entries(value).map(([member, one]) => `${keyText(member)} = ${tomlText(one)}`);
  return `{ ${pairs.join(', ')} }`;
}

const keyText = (key: string): string => (/^[\w-]+$/.test(key) ? key : tomlText(key));

function tomlText(value: unknown): string {
  if (typeof value === 'string') return quote(value);
  if (typeof value === 'boolean' || Number.isSafeInteger(value)) return String(value);
  if (Array.isArray(value)) return `[${value.map(tomlText).join(', ')}]`;
  if (isRecord(value)) return inlineTable(value);
  throw new TypeError('a value cannot be written as TOML');
}
