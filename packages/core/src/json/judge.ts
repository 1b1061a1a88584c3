/** No message needs more; `JSON.parse` takes seconds for a few million levels. */
export const MAX_DEPTH = 1_000;

/** One JSON value (RFC 8259), one that is nested too deeply, or neither. */
export type Verdict = 'json' | 'too-deep' | 'not-json';

/** A place in a text: 1-based line and column, in UTF-16 units. */
export interface Place {
  readonly line: number;
  readonly column: number;
}

const QUOTE = 0x22;
const COMMA = 0x2c;
const COLON = 0x3a;
const BACKSLASH = 0x5c;
const OPEN_ARRAY = 0x5b;
const CLOSE_ARRAY = 0x5d;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;
const FIRST_PRINTABLE = 0x20;
const LITERAL = /true|false|null|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
const UNICODE_ESCAPE = /\\u[0-9a-fA-F]{4}/y;
const SHORT_ESCAPES: ReadonlySet<number> = new Set(Buffer.from('"\\/bfnrt'));

/** What may come next. */
const VALUE = 0;
const FIRST_NAME = 1;
const NAME = 2;
const FIRST_ELEMENT = 3;
const BEHIND = 4;

/**
 * Reads a text without making anything of it: time and memory do not depend on what stands in it, only time on its
 * length. Accepts what `JSON.parse` accepts, up to `maxDepth` levels.
 */
export function judge(text: string, maxDepth = MAX_DEPTH): Verdict {
  const end = read(text, maxDepth);
  return end === VALID ? 'json' : end === TOO_DEEP ? 'too-deep' : 'not-json';
}

/**
 * The place of the first error, undefined for valid JSON. V8's own messages leave the position out for most errors, and
 * people editing a file need the line.
 */
export function jsonErrorPlace(text: string): Place | undefined {
  const end = read(text, Infinity);
  return end === VALID ? undefined : placeOf(text, end);
}

/** Line and column of an offset. */
export function placeOf(text: string, offset: number): Place {
  const before = text.slice(0, offset).split('\n');
  return { line: before.length, column: (before.at(-1)?.length ?? 0) + 1 };
}

const VALID = -1;
const TOO_DEEP = -2;

/** VALID, TOO_DEEP, or where the first thing stands that may not stand there. */
function read(text: string, maxDepth: number): number {
  const closers: number[] = [];
  let due = VALUE;
  let at = skipWhite(text, 0);
  for (; at < text.length; at = skipWhite(text, at)) {
    const char = text.charCodeAt(at);
    if (due === BEHIND) {
      const closer = closers.at(-1);
      if (char === closer) closers.pop();
      else if (char !== COMMA || closer === undefined) return at;
      else due = closer === CLOSE_OBJECT ? NAME : VALUE;
      at += 1;
    } else if (
      (due === FIRST_NAME && char === CLOSE_OBJECT) ||
      (due === FIRST_ELEMENT && char === CLOSE_ARRAY)
    ) {
      closers.pop();
      due = BEHIND;
      at += 1;
    } else if (due === FIRST_NAME || due === NAME) {
      const end = char === QUOTE ? behindString(text, at) : NOWHERE;
      if (end === NOWHERE) return at;
      at = skipWhite(text, end);
      if (text.charCodeAt(at) !== COLON) return at;
      due = VALUE;
      at += 1;
    } else if (char === OPEN_OBJECT || char === OPEN_ARRAY) {
      if (closers.length >= maxDepth) return TOO_DEEP;
      closers.push(char + 2);
      due = char === OPEN_OBJECT ? FIRST_NAME : FIRST_ELEMENT;
      at += 1;
    } else {
      const end = char === QUOTE ? behindString(text, at) : behindMatch(LITERAL, text, at);
      if (end === NOWHERE) return at;
      due = BEHIND;
      at = end;
    }
  }
  return due === BEHIND && closers.length === 0 ? VALID : text.length;
}

const NOWHERE = -3;

/** The index behind the string that opens at `at`; NOWHERE when it is none. */
function behindString(text: string, at: number): number {
  at += 1;
  for (;;) {
    // NaN behind the end, which is less than nothing and greater than nothing.
    const char = text.charCodeAt(at);
    if (char === QUOTE) return at + 1;
    if (char === BACKSLASH) {
      at = SHORT_ESCAPES.has(text.charCodeAt(at + 1)) ? at + 2 : behindMatch(UNICODE_ESCAPE, text, at);
      if (at === NOWHERE) return at;
    } else if (char >= FIRST_PRINTABLE) at += 1;
    else return NOWHERE;
  }
}

function behindMatch(pattern: RegExp, text: string, at: number): number {
  pattern.lastIndex = at;
  return pattern.test(text) ? pattern.lastIndex : NOWHERE;
}

function skipWhite(text: string, at: number): number {
  for (;;) {
    const char = text.charCodeAt(at);
    if (char > 0x20 || (char !== 0x20 && char !== 0x0a && char !== 0x0d && char !== 0x09)) return at;
    at += 1;
  }
}
