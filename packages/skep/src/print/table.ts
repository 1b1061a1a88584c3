import { printable } from '@skep/core/terminal/printable.ts';
import { displayWidth } from './display-width.ts';

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
