/**
 * Reads JSON text without decoding it, so that one value can be cut out or replaced and every other character stays:
 * unknown members, member order, escapes and numbers beyond 2^53. Everything here expects text that `JSON.parse` has
 * accepted; on other text the result is undefined, but found in one pass.
 */

/** Where a value stands: `text.slice(start, end)`. */
export interface Span {
  readonly start: number;
  readonly end: number;
}

/** One replacement of `splice`. */
export interface Edit {
  readonly span: Span;
  readonly text: string;
}

/** JSON text without white space between tokens. */
export interface CompactText {
  readonly json: string;
  /** How many members it names, in the objects at all levels. */
  readonly members: number;
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COLON = 0x3a;
const COMMA = 0x2c;
const OPEN_ARRAY = 0x5b;
const CLOSE_ARRAY = 0x5d;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;
const SPACE = 0x20;
const LINE_FEED = 0x0a;
const RETURN = 0x0d;
/** No name that anybody looks for is longer, were every character of it escaped. */
const MAX_ESCAPED_NAME = 512;

function skipSpace(text: string, at: number): number {
  while (at < text.length && text.charCodeAt(at) <= SPACE) at += 1;
  return at;
}

/** The index behind the string whose opening quote is at `at`. */
function skipString(text: string, at: number): number {
  let close = text.indexOf('"', at + 1);
  while (close !== -1) {
    let before = close - 1;
    while (text.charCodeAt(before) === BACKSLASH) before -= 1;
    if ((close - before) % 2 === 1) return close + 1;
    close = text.indexOf('"', close + 1);
  }
  return text.length;
}

/** The index behind the value that begins at `at`. */
function skipValue(text: string, at: number): number {
  let depth = 0;
  while (at < text.length) {
    const char = text.charCodeAt(at);
    if (char === QUOTE) {
      at = skipString(text, at);
      if (depth === 0) return at;
      continue;
    }
    if (char === CLOSE_OBJECT || char === CLOSE_ARRAY) {
      if (depth === 0) return at;
      depth -= 1;
      if (depth === 0) return at + 1;
    } else if (char === OPEN_OBJECT || char === OPEN_ARRAY) depth += 1;
    else if (depth === 0 && (char === COMMA || char <= SPACE)) return at;
    at += 1;
  }
  return at;
}

/** `"\u0069d"` names the same member as `"id"` (RFC 8259 §8.3). */
function memberName(text: string, start: number, end: number): unknown {
  const raw = text.slice(start + 1, end - 1);
  if (!raw.includes('\\')) return raw;
  return raw.length <= MAX_ESCAPED_NAME ? JSON.parse(text.slice(start, end)) : undefined;
}

/** Calls `member` for each member of the object that starts at or after `from`, as long as it says true. */
function eachMember(
  text: string,
  from: number,
  member: (name: unknown, value: Span, at: number) => boolean,
): void {
  let at = skipSpace(text, from);
  if (text.charCodeAt(at) !== OPEN_OBJECT) return;
  at = skipSpace(text, at + 1);
  while (text.charCodeAt(at) === QUOTE) {
    const nameEnd = skipString(text, at);
    const name = memberName(text, at, nameEnd);
    const start = skipSpace(text, skipSpace(text, nameEnd) + 1);
    const end = skipValue(text, start);
    if (!member(name, { start, end }, at)) return;
    at = skipSpace(text, skipSpace(text, end) + 1);
  }
}

/** `Name`, `NAME` and `name` in one form. As Unicode folds case: the Kelvin sign is a `k`, the long s an `s`. */
export function folded(name: string): string {
  return name.toLowerCase().toUpperCase();
}

const foldedNames = new WeakMap<ReadonlySet<string>, ReadonlySet<string>>();

/**
 * True for a name that is none of `wanted`, but that a reader which does not heed case takes for one of them: Go's
 * `encoding/json` does, and of both the last one counts. Expects sets that do not change.
 */
export function isLookalike(name: string, wanted: ReadonlySet<string>): boolean {
  if (wanted.has(name)) return false;
  let all = foldedNames.get(wanted);
  if (all === undefined) foldedNames.set(wanted, (all = new Set(Array.from(wanted, folded))));
  return all.has(folded(name));
}

/**
 * The members of the object that starts at or after `from`, those named in `wanted` only. Where one of them occurs twice,
 * two readers of the text may see different values and nobody should act on it, so the answer is `undefined`; with
 * `last` the last one counts, as in `JSON.parse`. With `exact` it is `undefined` for a lookalike of one of them, too.
 */
export function findMembers(
  text: string,
  from: number,
  wanted: ReadonlySet<string>,
  repeated: 'refuse' | 'last' | 'exact' = 'refuse',
): Map<string, Span> | undefined {
  const found = new Map<string, Span>();
  let isAmbiguous = false;
  eachMember(text, from, (name, value) => {
    if (typeof name !== 'string') return true;
    if (wanted.has(name)) {
      isAmbiguous ||= repeated !== 'last' && found.has(name);
      found.set(name, value);
    } else isAmbiguous ||= repeated === 'exact' && isLookalike(name, wanted);
    return !isAmbiguous;
  });
  return isAmbiguous ? undefined : found;
}

/** All members of that object, the last of equal ones; undefined where there are more than `limit`. */
export function allMembers(text: string, from: number, limit: number): Map<string, Span> | undefined {
  const found = new Map<string, Span>();
  let count = 0;
  eachMember(text, from, (name, value) => {
    count += 1;
    if (typeof name !== 'string') count = Infinity;
    else found.set(name, value);
    return count <= limit;
  });
  return count <= limit ? found : undefined;
}

/** `text` without the members of that object which are named in `unwanted`, however often; byte for byte else. */
export function cutMembers(text: string, from: number, unwanted: ReadonlySet<string>): string {
  const edits: Edit[] = [];
  let cutFrom: number | undefined;
  let keptEnd: number | undefined;
  let end = 0;
  eachMember(text, from, (name, value, at) => {
    end = value.end;
    if (typeof name === 'string' && unwanted.has(name)) {
      cutFrom ??= at;
      return true;
    }
    if (cutFrom !== undefined) edits.push({ span: { start: cutFrom, end: at }, text: '' });
    cutFrom = undefined;
    keptEnd = end;
    return true;
  });
  if (cutFrom !== undefined) edits.push({ span: { start: keptEnd ?? cutFrom, end }, text: '' });
  return edits.length === 0 ? text : splice(text, edits);
}

/** As `findMembers`, for one of them. */
function findMember(
  text: string,
  from: number,
  wanted: string,
  repeated: 'refuse' | 'last',
): Span | undefined {
  let found: Span | undefined;
  let count = 0;
  eachMember(text, from, (name, value) => {
    if (name !== wanted) return true;
    found = value;
    count += 1;
    return repeated === 'last' || count === 1;
  });
  return repeated === 'last' || count === 1 ? found : undefined;
}

/** Where `path` leads to; undefined when a member is absent or ambiguous. */
export function findPath(
  text: string,
  path: readonly string[],
  repeated: 'refuse' | 'last' = 'refuse',
): Span | undefined {
  let span: Span | undefined = { start: 0, end: text.length };
  for (const name of path) {
    span = findMember(text, span.start, name, repeated);
    if (span === undefined) return undefined;
  }
  return span;
}

/** The text of the member `path` leads to. As in `JSON.parse`, the last of equal members counts. */
export function memberSlice(text: string, path: readonly string[]): string | undefined {
  const span = findPath(text, path, 'last');
  return span && rawAt(text, span);
}

/** The elements of an array, the first `limit` of them; none where there is no array. */
export function findElements(text: string, limit = Infinity): readonly Span[] {
  const found: Span[] = [];
  let at = skipSpace(text, 0);
  if (text.charCodeAt(at) !== OPEN_ARRAY) return found;
  at = skipSpace(text, at + 1);
  while (at < text.length && found.length < limit && text.charCodeAt(at) !== CLOSE_ARRAY) {
    const end = skipValue(text, at);
    found.push({ start: at, end });
    at = skipSpace(text, end);
    if (text.charCodeAt(at) === COMMA) at = skipSpace(text, at + 1);
  }
  return found;
}

/** The raw text of the value at `span`. */
export function rawAt(text: string, span: Span): string {
  return text.slice(span.start, span.end);
}

/** `text` with each span replaced; spans must not overlap, their order does not matter. */
export function splice(text: string, edits: readonly Edit[]): string {
  let result = '';
  let at = 0;
  for (const edit of edits.toSorted((a, b) => a.span.start - b.span.start)) {
    result += text.slice(at, edit.span.start) + edit.text;
    at = edit.span.end;
  }
  return result + text.slice(at);
}

/** What is remembered while names are replaced: a document may be made of millions of them. */
const MAX_KNOWN_NAMES = 1000;
const MAX_PARTS = 4096;

/** True also for some texts with JSON in a string; costs less than to find every string. */
function mayEscapeNames(text: string): boolean {
  for (let colon = text.indexOf(':'); colon !== -1; colon = text.indexOf(':', colon + 1)) {
    let close = colon - 1;
    while (text.charCodeAt(close) <= SPACE) close -= 1;
    if (text.charCodeAt(close) !== QUOTE) continue;
    // The quote before it opens the name, unless that is escaped itself.
    const before = text.lastIndexOf('"', close - 1) - 1;
    if (text.slice(Math.max(0, before), close).includes('\\')) return true;
  }
  return false;
}

/**
 * The same JSON, with no escape in the name of a member but those that it cannot do without. Fails as `JSON.parse` for
 * a name that is no string.
 */
export function withPlainNames(text: string): string {
  if (!text.includes('\\') || !mayEscapeNames(text)) return text;
  const chunks: string[] = [];
  let parts: string[] = [];
  let behind = 0;
  const known = new Map<string, string>();
  for (let at = text.indexOf('"'), end = 0; at !== -1; at = text.indexOf('"', end)) {
    end = skipString(text, at);
    if (text.charCodeAt(skipSpace(text, end)) !== COLON) continue;
    const name = text.slice(at, end);
    if (!name.includes('\\')) continue;
    const plain = known.get(name) ?? JSON.stringify(JSON.parse(name));
    if (known.size < MAX_KNOWN_NAMES) known.set(name, plain);
    parts.push(text.slice(behind, at), plain);
    behind = end;
    if (parts.length < MAX_PARTS) continue;
    chunks.push(parts.join(''));
    parts = [];
  }
  return [...chunks, ...parts, text.slice(behind)].join('');
}

/**
 * The same JSON on one line. A raw line break is legal only between tokens (RFC 8259 §7), so a space is equal. Overwrites
 * in a buffer, because `replaceAll` makes something of every match: megabytes of line breaks were seconds.
 */
export function onOneLine(text: string): string {
  if (!text.includes('\n') && !text.includes('\r')) return text;
  const units = Buffer.from(text, 'utf16le');
  for (let at = 0; at < units.length; at += 2) {
    if (units[at + 1] === 0 && (units[at] === LINE_FEED || units[at] === RETURN)) units[at] = SPACE;
  }
  return units.toString('utf16le');
}

export function compactText(text: string): CompactText {
  const parts: string[] = [];
  let members = 0;
  let from = 0;
  for (let at = 0; at < text.length;) {
    const char = text.charCodeAt(at);
    if (char === QUOTE) at = skipString(text, at);
    else if (char <= SPACE) {
      if (from < at) parts.push(text.slice(from, at));
      at = from = skipSpace(text, at);
    } else {
      if (char === COLON) members += 1;
      at += 1;
    }
  }
  if (from === 0) return { json: text, members };
  parts.push(text.slice(from));
  return { json: parts.join(''), members };
}

/** True when brackets outside strings are open to more than `limit` levels at once. */
export function isDeeperThan(limit: number, text: string): boolean {
  let depth = 0;
  // As many brackets as levels are needed at least.
  for (let at = 0; at < text.length && text.length > limit;) {
    const char = text.charCodeAt(at);
    if (char === QUOTE) {
      at = skipString(text, at);
      continue;
    }
    at += 1;
    if (char === CLOSE_OBJECT || char === CLOSE_ARRAY) depth -= 1;
    else if ((char === OPEN_OBJECT || char === OPEN_ARRAY) && (depth += 1) > limit) return true;
  }
  return false;
}

/** True where every bracket that opens outside of strings closes, the first with the end of the text: it is not cut off. */
export function isWhole(text: string): boolean {
  let depth = 0;
  for (let at = skipSpace(text, 0); at < text.length;) {
    const char = text.charCodeAt(at);
    at = char === QUOTE ? skipString(text, at) : at + 1;
    const closes = char === CLOSE_OBJECT || char === CLOSE_ARRAY;
    if (char === OPEN_OBJECT || char === OPEN_ARRAY) depth += 1;
    else if (closes) depth -= 1;
    if (depth <= 0) return depth === 0 && closes && skipSpace(text, at) >= text.length;
  }
  return false;
}

/** The name of a member that occurs twice in one object, or undefined (RFC 8259 §4). */
export function repeatedMember(text: string): string | undefined {
  const open: (Set<string> | undefined)[] = [];
  for (let at = 0; at < text.length;) {
    const char = text.charCodeAt(at);
    if (char !== QUOTE) {
      at += 1;
      if (char === OPEN_OBJECT) open.push(new Set());
      else if (char === OPEN_ARRAY) open.push(undefined);
      else if (char === CLOSE_OBJECT || char === CLOSE_ARRAY) open.pop();
      continue;
    }
    const end = skipString(text, at);
    const members = open.at(-1);
    // In an object, what a colon follows is a name.
    if (members !== undefined && text.charCodeAt(skipSpace(text, end)) === COLON) {
      const name = String(JSON.parse(text.slice(at, end)));
      if (members.has(name)) return name;
      members.add(name);
    }
    at = end;
  }
  return undefined;
}
