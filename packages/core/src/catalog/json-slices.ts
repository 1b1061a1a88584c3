/**
 * Cuts values out of JSON text without decoding them, so that an entry keeps its exact text: member order, unknown
 * members, number digits and escapes. All functions expect text that `JSON.parse` has accepted.
 */
const QUOTE = 34;
const BACKSLASH = 92;
const COLON = 58;
const COMMA = 44;
const OPEN_LIST = 91;
const CLOSE_LIST = 93;
const OPEN_OBJECT = 123;
const CLOSE_OBJECT = 125;

function isSpace(code: number): boolean {
  return code === 32 || code === 10 || code === 13 || code === 9;
}

function skipSpace(text: string, at: number): number {
  while (isSpace(text.charCodeAt(at))) at++;
  return at;
}

/** `at` is on the opening quote; returns the offset after the closing one. */
function endOfString(text: string, at: number): number {
  for (let i = at + 1; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code === QUOTE) return i + 1;
    if (code === BACKSLASH) i++;
  }
  return text.length;
}

/** `at` is on the first character of a value; returns the offset after its last one. */
function endOfValue(text: string, at: number): number {
  let depth = 0;
  for (let i = at; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code === QUOTE) {
      i = endOfString(text, i) - 1;
      if (depth === 0) return i + 1;
    } else if (code === OPEN_OBJECT || code === OPEN_LIST) {
      depth++;
    } else if (code === CLOSE_OBJECT || code === CLOSE_LIST) {
      if (depth === 0) return i;
      if (--depth === 0) return i + 1;
    } else if (depth === 0 && (code === COMMA || isSpace(code))) {
      return i;
    }
  }
  return text.length;
}

interface Child {
  /** Member name; undefined in an array. */
  readonly key?: string;
  readonly start: number;
  readonly end: number;
}

function* children(text: string, open: number): Generator<Child> {
  const isObject = text[open] === '{';
  let at = skipSpace(text, open + 1);
  while (text[at] !== '}' && text[at] !== ']' && at < text.length) {
    let key: string | undefined;
    if (isObject) {
      const end = endOfString(text, at);
      key = String(JSON.parse(text.slice(at, end)));
      at = skipSpace(text, skipSpace(text, end) + 1);
    }
    const end = endOfValue(text, at);
    yield key === undefined ? { start: at, end } : { key, start: at, end };
    at = skipSpace(text, end);
    if (text[at] === ',') at = skipSpace(text, at + 1);
  }
}

/** The text of the member `path` leads to, or undefined. As in `JSON.parse`, the last of equal members counts. */
export function memberSlice(json: string, path: readonly string[]): string | undefined {
  let start = skipSpace(json, 0);
  let end = endOfValue(json, start);
  for (const key of path) {
    if (json[start] !== '{') return undefined;
    let found: Child | undefined;
    for (const child of children(json, start)) if (child.key === key) found = child;
    if (found === undefined) return undefined;
    start = found.start;
    end = found.end;
  }
  return json.slice(start, end);
}

/** The texts of an array's elements, in order; an empty list when `json` is no array. */
export function elementSlices(json: string): string[] {
  const open = skipSpace(json, 0);
  if (json[open] !== '[') return [];
  const slices: string[] = [];
  for (const { start, end } of children(json, open)) slices.push(json.slice(start, end));
  return slices;
}

/** JSON text without white space between tokens. */
export interface CompactText {
  readonly json: string;
  /** How many members it names, in the objects at all levels. */
  readonly members: number;
}

export function compactText(json: string): CompactText {
  const parts: string[] = [];
  let members = 0;
  let from = 0;
  for (let i = 0; i < json.length; i++) {
    const code = json.charCodeAt(i);
    if (code === QUOTE) {
      i = endOfString(json, i) - 1;
    } else if (code === COLON) {
      members++;
    } else if (isSpace(code)) {
      if (from < i) parts.push(json.slice(from, i));
      i = skipSpace(json, i) - 1;
      from = i + 1;
    }
  }
  if (from === 0) return { json, members };
  if (from < json.length) parts.push(json.slice(from));
  return { json: parts.join(''), members };
}

/** True when arrays and objects nest deeper than `limit`; such text breaks programs that recurse over it. */
export function nestsDeeperThan(json: string, limit: number): boolean {
  let depth = 0;
  for (let i = 0; i < json.length; i++) {
    const code = json.charCodeAt(i);
    if (code === QUOTE) i = endOfString(json, i) - 1;
    else if (code === CLOSE_OBJECT || code === CLOSE_LIST) depth--;
    else if ((code === OPEN_OBJECT || code === OPEN_LIST) && ++depth > limit) return true;
  }
  return false;
}

/** The name of a member that occurs twice in one object anywhere in `json`, or undefined (RFC 8259 §4). */
export function repeatedMember(json: string): string | undefined {
  const open: (Set<string> | undefined)[] = [];
  let expectsKey = false;
  for (let i = 0; i < json.length; i++) {
    switch (json.charCodeAt(i)) {
      case OPEN_OBJECT:
        open.push(new Set());
        expectsKey = true;
        break;
      case OPEN_LIST:
        open.push(undefined);
        expectsKey = false;
        break;
      case CLOSE_OBJECT:
      case CLOSE_LIST:
        open.pop();
        expectsKey = false;
        break;
      case COMMA:
        expectsKey = open.at(-1) !== undefined;
        break;
      case QUOTE: {
        const end = endOfString(json, i);
        const members = open.at(-1);
        if (expectsKey && members !== undefined) {
          const key = String(JSON.parse(json.slice(i, end)));
          if (members.has(key)) return key;
          members.add(key);
        }
        expectsKey = false;
        i = end - 1;
        break;
      }
      default:
    }
  }
  return undefined;
}
