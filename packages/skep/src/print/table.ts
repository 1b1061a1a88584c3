import type { Terminal } from '@skep/core/command/terminal.ts';
import { wrapText } from '@skep/core/settings/to-help.ts';
import { paint, type Format } from '@skep/core/terminal/paint.ts';
import { printable } from '@skep/core/terminal/printable.ts';
import type { CardRow } from '../permissions/card.ts';

/** What a table is written to. */
export type Screen = Pick<Terminal, 'widthOut' | 'colorOut'>;

/** A column, and how it gives way on a terminal that is too narrow for all of them. */
export interface Column {
  readonly title: string;
  /** It is cut to this width, and no further than its title, before those that do not say so. */
  readonly least?: number;
  /** It is cut at its start, because the end says more. */
  readonly keepsEnd?: true;
  /** It is left out where cutting is not enough; the lowest number goes first. */
  readonly optional?: number;
  /** It is cut when nothing else helps: somebody copies it. */
  readonly whole?: true;
  /** How a cell looks where there are colours. */
  readonly format?: (cell: string) => Format | undefined;
}

interface MeasuredColumn extends Column {
  /** Its place in a row. */
  readonly at: number;
  width: number;
}

const GAP = 3;
const NO_SCREEN: Screen = { widthOut: Infinity, colorOut: false };
const MIN_VALUE_WIDTH = 20;

/**
 * Columns padded with three spaces, wide characters counted right, newline-terminated. No line is wider than the screen,
 * and nothing is cut where there is none.
 */
export function toTable(
  head: readonly (string | Column)[],
  rows: readonly (readonly string[])[],
  screen = NO_SCREEN,
): string {
  const cells = rows.map((row) => row.map(printable));
  const columns = head.map((one, at): MeasuredColumn => {
    const column = typeof one === 'string' ? { title: one } : one;
    const widest = (most: number, row: readonly string[]): number =>
      Math.max(most, displayWidth(row[at] ?? ''));
    return { ...column, at, width: cells.reduce(widest, displayWidth(column.title)) };
  });
  const shown = fitColumns(columns, screen.widthOut);
  const titles = shown.map((column) => pad(column.title, column));
  const lines = cells.map((row) =>
    shown.map((column) => {
      const cell = row[column.at] ?? '';
      return pad(cell, column, screen.colorOut ? column.format?.(cell) : undefined);
    }),
  );
  return [titles, ...lines].map((line) => `${line.join('').trimEnd()}\n`).join('');
}

/** The columns that are shown, with the width of each. */
function fitColumns(columns: readonly MeasuredColumn[], room: number): readonly MeasuredColumn[] {
  const fitting = narrowColumns(columns, room, ({ title, least, width }) =>
    least === undefined ? width : Math.min(width, Math.max(least, displayWidth(title))),
  );
  if (fitting) return fitting;
  const [first] = columns
    .filter(({ optional }) => optional !== undefined)
    .toSorted((one, other) => (one.optional ?? 0) - (other.optional ?? 0));
  if (first) {
    return fitColumns(
      columns.filter((column) => column !== first),
      room,
    );
  }
  const cut = narrowColumns(columns, room, ({ title, whole, width }) =>
    whole ? width : Math.min(width, displayWidth(title)),
  );
  if (cut) return cut;
  const all = columns.map((column) => ({ ...column, width: 1 }));
  return narrowColumns(columns, room, () => 1) ?? all;
}

/** Takes width from the widest column that may give some, again and again; undefined where that is not enough. */
function narrowColumns(
  columns: readonly MeasuredColumn[],
  room: number,
  leastOf: (column: MeasuredColumn) => number,
): readonly MeasuredColumn[] | undefined {
  const narrowed = columns.map((column) => ({
    ...column,
    width: Math.max(leastOf(column), Math.min(column.width, room)),
  }));
  let over = narrowed.reduce((sum, { width }) => sum + width + GAP, -GAP) - room;
  for (; over > 0; over -= 1) {
    const [widest] = narrowed
      .filter((column) => column.width > leastOf(column))
      .toSorted((one, other) => other.width - one.width);
    if (!widest) return undefined;
    widest.width -= 1;
  }
  return narrowed;
}

/** The text in a format, as wide as its column and the gap behind it. */
function pad(text: string, column: MeasuredColumn, format?: Format): string {
  const cell = shorten(text, column);
  const space = ' '.repeat(column.width + GAP - displayWidth(cell));
  return (format ? paint(format, cell, true) : cell) + space;
}

/** As much of a text as stands in a column. */
export function shorten(
  text: string,
  { width, keepsEnd }: Pick<MeasuredColumn, 'width' | 'keepsEnd'>,
): string {
  if (displayWidth(text) <= width) return text;
  let kept = '';
  let left = width - 1;
  for (const character of keepsEnd ? Array.from(text).toReversed() : text) {
    left -= displayWidth(character);
    if (left < 0) break;
    kept = keepsEnd ? character + kept : kept + character;
  }
  return keepsEnd ? `…${kept.trimStart()}` : `${kept.trimEnd()}…`;
}

/** A name, its value, and how that looks where there are colours. */
export type Fact = readonly [name: string, value: string | undefined, format?: Format | undefined];

/** A permission card as facts. */
export function cardFacts(card: readonly Pick<CardRow, 'label' | 'text' | 'tone'>[]): readonly Fact[] {
  return card.map(({ label, text, tone }) => [label, text, tone === 'caution' ? 'yellow' : undefined]);
}

/**
 * `Name:  value` lines with the values below each other, each wrapped to the screen where there is one; rows without a
 * value are left out. One without a name goes on with the row before it.
 */
export function toFacts(facts: readonly Fact[], screen = NO_SCREEN): string {
  const lines = facts.flatMap(([name, value = '', format]) =>
    value === '' ? [] : [{ name: name === '' ? '' : `${printable(name)}:`, value: printable(value), format }],
  );
  const column = lines.reduce((most, { name }) => Math.max(most, displayWidth(name)), 0) + 1;
  const room = Math.max(MIN_VALUE_WIDTH, screen.widthOut - column);
  return lines
    .map(({ name, value, format }) => {
      const wrapped = screen.widthOut === Infinity ? [value] : wrapText(value, room, displayWidth);
      const shown = wrapped.map((line) => (format ? paint(format, line, screen.colorOut) : line));
      return `${name}${' '.repeat(column - displayWidth(name))}${shown.join(`\n${' '.repeat(column)}`)}\n`;
    })
    .join('');
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
