import { printable } from '@skep/core/terminal/printable.ts';

const GAP = 3;

/** Columns padded with three spaces, wide characters counted right, newline-terminated. */
export function toTable(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const lines = [head, ...rows.map((row) => row.map(printable))];
  const widths = head.map(() => 0);
  for (const line of lines)
    for (const [column, cell] of line.entries())
      widths[column] = Math.max(widths[column] ?? 0, displayWidth(cell));
  const pad = (cell: string, column: number): string =>
    cell + ' '.repeat((widths[column] ?? 0) + GAP - displayWidth(cell));
  return lines.map((line) => `${line.map(pad).join('').trimEnd()}\n`).join('');
}

/** `Name:  value` lines with the values below each other; rows without a value are left out. */
export function toFacts(facts: readonly (readonly [string, string | undefined])[]): string {
  const shown = facts.filter((fact): fact is [string, string] => fact[1] !== undefined && fact[1] !== '');
  const lines = shown.map(([name, value]) => [printable(name), printable(value)] as const);
  const width = Math.max(0, ...lines.map(([name]) => name.length)) + 2;
  return lines.map(([name, value]) => `${`${name}:`.padEnd(width)}${value}\n`).join('');
}

/** Drawn over two columns (UAX 11: wide and fullwidth), as terminals do. */
const WIDE =
  /[\p{Script=Han}\p{Script=Hangul}\p{Script=Hiragana}\p{Script=Katakana}\p{Emoji_Presentation}\u3000-\u303F\uFF01-\uFF60\uFFE0-\uFFE6]/u;
/** Drawn over the character before it. */
const COMBINING = /\p{Mn}|\p{Me}/u;
const PLAIN = /^[\x20-\x7E]*$/;

/** The columns that a text without control characters takes on a terminal. */
export function displayWidth(text: string): number {
  if (PLAIN.test(text)) return text.length;
  let width = 0;
  for (const character of text) {
    if (COMBINING.test(character)) continue;
    width += WIDE.test(character) ? 2 : 1;
  }
  return width;
}
