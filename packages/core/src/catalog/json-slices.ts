/**
 * Cuts values out of JSON text without decoding them, so that an entry keeps its exact text: member order, unknown
 * members, number digits and escapes. All functions expect text that `JSON.parse` has accepted.
 */
const QUOTE = 34;
const BACKSLASH = 92;

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
    switch (text.charAt(i)) {
      case '"':
        i = endOfString(text, i) - 1;
        if (depth === 0) return i + 1;
        break;
      case '{':
      case '[':
        depth++;
        break;
      case '}':
      case ']':
        if (depth === 0) return i;
        depth--;
        if (depth === 0) return i + 1;
        break;
      case ',':
      case ' ':
      case '\n':
      case '\r':
      case '\t':
        if (depth === 0) return i;
        break;
      default:
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

/** The same JSON without white space between tokens. */
export function compactJson(json: string): string {
  const parts: string[] = [];
  let from = 0;
  for (let i = 0; i < json.length; i++) {
    const code = json.charCodeAt(i);
    if (code === QUOTE) {
      i = endOfString(json, i) - 1;
    } else if (isSpace(code)) {
      if (from < i) parts.push(json.slice(from, i));
      i = skipSpace(json, i) - 1;
      from = i + 1;
    }
  }
  if (from < json.length) parts.push(json.slice(from));
  return parts.join('');
}

/** True when arrays and objects nest deeper than `limit`; such text breaks programs that recurse over it. */
export function nestsDeeperThan(json: string, limit: number): boolean {
  let depth = 0;
  for (let i = 0; i < json.length; i++) {
    const char = json[i];
    if (char === '"') i = endOfString(json, i) - 1;
    else if (char === '}' || char === ']') depth--;
    else if ((char === '{' || char === '[') && ++depth > limit) return true;
  }
  return false;
}

/** The name of a member that occurs twice in one object anywhere in `json`, or undefined (RFC 8259 §4). */
export function repeatedMember(json: string): string | undefined {
  const open: (Set<string> | undefined)[] = [];
  let expectsKey = false;
  for (let i = 0; i < json.length; i++) {
    switch (json.charAt(i)) {
      case '{':
        open.push(new Set());
        expectsKey = true;
        break;
      case '[':
        open.push(undefined);
        expectsKey = false;
        break;
      case '}':
      case ']':
        open.pop();
        expectsKey = false;
        break;
      case ',':
        expectsKey = open.at(-1) !== undefined;
        break;
      case '"': {
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
