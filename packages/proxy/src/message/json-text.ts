/** Nesting that no message needs and no reader likes; `JSON.parse` takes seconds for a few million levels. */
export const MAX_DEPTH = 1_000;

/** What a text is: one JSON value (RFC 8259), one that is nested too deeply, or neither. */
export type Verdict = 'json' | 'too-deep' | 'not-json';

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
const ESCAPE = /\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})/y;

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
  const closers = new Uint8Array(maxDepth);
  let depth = 0;
  let due = VALUE;
  for (let at = skipWhite(text, 0); at < text.length; at = skipWhite(text, at)) {
    const char = text.charCodeAt(at);
    if (due === BEHIND) {
      if (depth === 0) return 'not-json';
      const closer = closers[depth - 1];
      if (char === closer) depth -= 1;
      else if (char !== COMMA) return 'not-json';
      else due = closer === CLOSE_OBJECT ? NAME : VALUE;
      at += 1;
    } else if (
      (due === FIRST_NAME && char === CLOSE_OBJECT) ||
      (due === FIRST_ELEMENT && char === CLOSE_ARRAY)
    ) {
      depth -= 1;
      due = BEHIND;
      at += 1;
    } else if (due === FIRST_NAME || due === NAME) {
      at = char === QUOTE ? skipWhite(text, behindString(text, at)) : text.length;
      if (text.charCodeAt(at) !== COLON) return 'not-json';
      due = VALUE;
      at += 1;
    } else if (char === OPEN_OBJECT || char === OPEN_ARRAY) {
      if (depth === maxDepth) return 'too-deep';
      closers[depth] = char + 2;
      depth += 1;
      due = char === OPEN_OBJECT ? FIRST_NAME : FIRST_ELEMENT;
      at += 1;
    } else {
      const end = char === QUOTE ? behindString(text, at) : behindMatch(LITERAL, text, at);
      if (end > text.length) return 'not-json';
      due = BEHIND;
      at = end;
    }
  }
  return due === BEHIND && depth === 0 ? 'json' : 'not-json';
}

/** The index behind the string that opens at `at`; beyond the text when it is none. */
const behindString = (text: string, at: number): number => {
  at += 1;
  for (;;) {
    // NaN behind the end, which is less than nothing and greater than nothing.
    const char = text.charCodeAt(at);
    if (char === QUOTE) return at + 1;
    if (char === BACKSLASH) at = behindMatch(ESCAPE, text, at);
    else if (char >= FIRST_PRINTABLE) at += 1;
    else return text.length + 1;
  }
};

const behindMatch = (pattern: RegExp, text: string, at: number): number => {
  pattern.lastIndex = at;
  return pattern.test(text) ? pattern.lastIndex : text.length + 1;
};

const skipWhite = (text: string, at: number): number => {
  for (;;) {
    const char = text.charCodeAt(at);
    if (char > 0x20 || (char !== 0x20 && char !== 0x0a && char !== 0x0d && char !== 0x09)) return at;
    at += 1;
  }
};
