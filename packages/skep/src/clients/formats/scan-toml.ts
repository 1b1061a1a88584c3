import { parse } from 'smol-toml';
import { isRecord } from '@skep/core/json/is-record.ts';
import type { Bracketed, Range } from './bracketed.ts';

/** A header or a pair of a TOML text: where it begins and ends, without the comment behind it. */
export interface Statement extends Range {
  /** `[path]`, `[[path]]`, or `path = value`. */
  readonly kind: 'table' | 'list' | 'pair';
  readonly path: readonly string[];
  /** Of a pair whose value is an array: its items. */
  readonly list?: Bracketed;
}

/** The statements of a text that the library has parsed; what stands before the first header has no header. */
export function scanToml(text: string): readonly Statement[] {
  const statements: Statement[] = [];
  let inTable = false;
  for (let at = skipBlank(text, 0); at < text.length; at = skipBlank(text, at)) {
    const header = /\[\[?/y;
    header.lastIndex = at;
    const [open] = header.exec(text) ?? [];
    const from = at + (open?.length ?? 0);
    const keyEnd = endOfKey(text, from);
    if (open !== undefined) {
      const end = keyEnd + open.length;
      inTable = true;
      statements.push({
        kind: open === '[' ? 'table' : 'list',
        path: pathOf(text.slice(from, keyEnd)),
        start: at,
        end,
      });
      at = end;
      continue;
    }
    const start = skipBlank(text, keyEnd + 1);
    const { end, list } = scanValue(text, start);
    // A pair below a header is not one of the document itself.
    const path = inTable ? [] : pathOf(text.slice(from, keyEnd));
    statements.push({ kind: 'pair', path, start: at, end, ...(list && { list }) });
    at = end;
  }
  return statements;
}

function pathOf(key: string): readonly string[] {
  const path: string[] = [];
  for (let one: unknown = parse(`${key} = 0`); isRecord(one);) {
    const [name] = Object.keys(one);
    if (name === undefined) break;
    path.push(name);
    one = one[name];
  }
  return path;
}

/** Where a key ends: at `=` or `]` that stands in no string. */
function endOfKey(text: string, from: number): number {
  for (let at = from; at < text.length;) {
    if (text[at] === '=' || text[at] === ']') return at;
    at = endOfString(text, at) ?? at + 1;
  }
  return text.length;
}

/** White space, line ends and comments. */
function skipBlank(text: string, from: number): number {
  const blank = /(?:[ \t\r\n]+|#[^\n]*)*/y;
  blank.lastIndex = from;
  blank.test(text);
  return blank.lastIndex;
}

/** The end of the string that begins at `at`; undefined where none does. */
function endOfString(text: string, at: number): number | undefined {
  const string = /"""(?:[^\\]|\\[\s\S])*?"{3,5}|'''[\s\S]*?'{3,5}|"(?:[^"\\\n]|\\.)*"|'[^'\n]*'/y;
  string.lastIndex = at;
  return string.test(text) ? string.lastIndex : undefined;
}

function scanValue(text: string, start: number): { readonly end: number; readonly list?: Bracketed } {
  const items: Range[] = [];
  let depth = 0;
  let item: number | undefined;
  let last = start;
  for (let at = start; at < text.length;) {
    const one = text[at];
    if (depth === 0 && at > start && (one === '\n' || one === '#')) break;
    if (one === '#') {
      at = skipBlank(text, at);
      continue;
    }
    const isClosing = one === ']' || one === '}';
    if (depth === 1 && (one === ',' || isClosing)) {
      if (item !== undefined) items.push({ start: item, end: last });
      item = undefined;
    } else if (depth >= 1 && item === undefined && !/\s/.test(one ?? ' ')) item = at;
    const end = endOfString(text, at) ?? at + 1;
    if (one === '[' || one === '{') depth += 1;
    if (isClosing) depth -= 1;
    if (!/\s/.test(one ?? ' ')) last = end;
    at = end;
    if (isClosing && depth === 0) break;
  }
  const isList = text[start] === '[';
  return { end: last, ...(isList && { list: { open: start + 1, close: last - 1, items } }) };
}
