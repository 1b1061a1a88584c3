/** Where a JSON text (RFC 8259) stops being JSON: 1-based line and column, in UTF-16 units. */
export interface Place {
  readonly line: number;
  readonly column: number;
}

const SPACE = /[ \t\n\r]*/uy;
const TOKEN = /[{}[\],:]|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null/y;
const ESCAPE = /\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})/y;

type Expect = 'value' | 'value-or-end' | 'key' | 'key-or-end' | 'colon' | 'comma-or-end' | 'nothing';

/**
 * The place of the first error, undefined for valid JSON. V8's own messages leave the position out for most errors, and
 * people editing a file need the line. Runs only after a parse has failed; keeps one frame per open bracket.
 */
export function jsonErrorPlace(text: string): Place | undefined {
  const open: ('{' | '[')[] = [];
  let expect: Expect = 'value';
  for (let at = skipSpace(text, 0); at < text.length; at = skipSpace(text, at)) {
    const token = tokenAt(text, at);
    const next: Expect | undefined = token === undefined ? undefined : step(token, expect, open);
    if (token === undefined || next === undefined) return placeOf(text, at);
    expect = next;
    at += token.length;
  }
  return expect === 'nothing' ? undefined : placeOf(text, text.length);
}

function tokenAt(text: string, at: number): string | undefined {
  if (text[at] === '"') return stringAt(text, at);
  TOKEN.lastIndex = at;
  return TOKEN.exec(text)?.[0];
}

/** Scanned by hand: a repeated group in a regular expression overflows the stack on strings of some megabytes. */
function stringAt(text: string, start: number): string | undefined {
  for (let at = start + 1; at < text.length;) {
    const unit = text.charCodeAt(at);
    if (unit === 0x22) return text.slice(start, at + 1);
    if (unit < 0x20) return undefined;
    if (unit === 0x5c) {
      ESCAPE.lastIndex = at;
      const escape = ESCAPE.exec(text)?.[0];
      if (escape === undefined) return undefined;
      at += escape.length;
    } else at += 1;
  }
  return undefined;
}

/** Line and column of an offset. */
export function placeOf(text: string, offset: number): Place {
  const before = text.slice(0, offset).split('\n');
  return { line: before.length, column: (before.at(-1)?.length ?? 0) + 1 };
}

function step(token: string, expect: Expect, open: ('{' | '[')[]): Expect | undefined {
  if (token === '}' || token === ']') return close(token, expect, open);
  if (token === ':') return expect === 'colon' ? 'value' : undefined;
  if (token === ',') {
    if (expect !== 'comma-or-end') return undefined;
    return open.at(-1) === '{' ? 'key' : 'value';
  }
  if (expect === 'key' || expect === 'key-or-end') return token.startsWith('"') ? 'colon' : undefined;
  if (expect !== 'value' && expect !== 'value-or-end') return undefined;
  if (token === '{' || token === '[') {
    open.push(token);
    return token === '{' ? 'key-or-end' : 'value-or-end';
  }
  return afterValue(open);
}

function close(token: '}' | ']', expect: Expect, open: ('{' | '[')[]): Expect | undefined {
  const [opener, empty] = token === '}' ? (['{', 'key-or-end'] as const) : (['[', 'value-or-end'] as const);
  if (open.at(-1) !== opener || (expect !== empty && expect !== 'comma-or-end')) return undefined;
  open.pop();
  return afterValue(open);
}

function afterValue(open: readonly string[]): Expect {
  return open.length === 0 ? 'nothing' : 'comma-or-end';
}

function skipSpace(text: string, at: number): number {
  SPACE.lastIndex = at;
  return at + (SPACE.exec(text)?.[0].length ?? 0);
}
