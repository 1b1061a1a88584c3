/**
 * Finds members in JSON text without rebuilding it, so that the proxy can change one value and leave every other
 * byte alone: unknown members, member order and numbers beyond 2^53 survive. Everything here expects text that
 * `JSON.parse` has accepted; on other text the result is undefined.
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

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const OPEN_ARRAY = 0x5b;
const CLOSE_ARRAY = 0x5d;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;
const SPACE = 0x20;
const LINE_FEED = 0x0a;
const RETURN = 0x0d;

const skipSpace = (text: string, at: number): number => {
  while (at < text.length && text.charCodeAt(at) <= SPACE) at += 1;
  return at;
};

/** The index behind the string whose opening quote is at `at`. */
const skipString = (text: string, at: number): number => {
  let close = text.indexOf('"', at + 1);
  while (close !== -1) {
    let before = close - 1;
    while (text.charCodeAt(before) === BACKSLASH) before -= 1;
    if ((close - before) % 2 === 1) return close + 1;
    close = text.indexOf('"', close + 1);
  }
  return text.length;
};

const skipContainer = (text: string, at: number): number => {
  let depth = 0;
  while (at < text.length) {
    const char = text.charCodeAt(at);
    if (char === QUOTE) {
      at = skipString(text, at);
      continue;
    }
    at += 1;
    if (char === OPEN_OBJECT || char === OPEN_ARRAY) depth += 1;
    else if ((char === CLOSE_OBJECT || char === CLOSE_ARRAY) && (depth -= 1) === 0) return at;
  }
  return at;
};

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

const endsScalar = (char: number): boolean =>
  char === COMMA || char === CLOSE_OBJECT || char === CLOSE_ARRAY || char <= SPACE;

const skipValue = (text: string, at: number): number => {
  const char = text.charCodeAt(at);
  if (char === QUOTE) return skipString(text, at);
  if (char === OPEN_OBJECT || char === OPEN_ARRAY) return skipContainer(text, at);
  while (at < text.length && !endsScalar(text.charCodeAt(at))) at += 1;
  return at;
};

/** No name that anybody looks for is longer, were every character of it escaped. */
const ESCAPED_NAME_LIMIT = 512;

/** `"\u0069d"` names the same member as `"id"` (RFC 8259 §8.3). */
const memberName = (text: string, start: number, end: number): unknown => {
  const raw = text.slice(start + 1, end - 1);
  if (!raw.includes('\\')) return raw;
  return raw.length <= ESCAPED_NAME_LIMIT ? JSON.parse(text.slice(start, end)) : undefined;
};

/**
 * The members of the object that starts at or after `from`, those named in `wanted` only. `undefined` when one of
 * them occurs twice: two readers of such a text may see different values, so nobody should act on it.
 */
export function findMembers(
  text: string,
  from: number,
  wanted: ReadonlySet<string>,
): Map<string, Span> | undefined {
  const found = new Map<string, Span>();
  let at = skipSpace(text, from);
  if (text.charCodeAt(at) !== OPEN_OBJECT) return found;
  at = skipSpace(text, at + 1);
  while (text.charCodeAt(at) === QUOTE) {
    const nameEnd = skipString(text, at);
    const name = memberName(text, at, nameEnd);
    const start = skipSpace(text, skipSpace(text, nameEnd) + 1);
    const end = skipValue(text, start);
    if (typeof name === 'string' && wanted.has(name)) {
      if (found.has(name)) return undefined;
      found.set(name, { start, end });
    }
    at = skipSpace(text, skipSpace(text, end) + 1);
  }
  return found;
}

/** The elements of an array, the first `limit` of them; none where there is no array. */
export function findElements(text: string, limit: number): readonly Span[] {
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

/** Follows `path` from the outermost object; undefined when a member is absent or ambiguous. */
export function findPath(text: string, path: readonly string[], from = 0): Span | undefined {
  let span: Span | undefined = { start: from, end: text.length };
  for (const name of path) {
    span = findMembers(text, span.start, new Set([name]))?.get(name);
    if (span === undefined) return undefined;
  }
  return span;
}

/** The raw text of the value at `span`. */
export const rawAt = (text: string, span: Span): string => text.slice(span.start, span.end);

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
