import Table from 'cli-table3';
import { printable } from '@skep/core/terminal/printable.ts';

const NOTHING = {
  top: '',
  'top-mid': '',
  'top-left': '',
  'top-right': '',
  bottom: '',
  'bottom-mid': '',
  'bottom-left': '',
  'bottom-right': '',
  left: '',
  'left-mid': '',
  mid: '',
  'mid-mid': '',
  right: '',
  'right-mid': '',
  middle: '',
};

/** Columns padded with three spaces (spec run-workload §6.6), wide characters counted right, newline-terminated. */
export function toTable(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const table = new Table({
    chars: NOTHING,
    style: { 'padding-left': 0, 'padding-right': 3, compact: true },
  });
  table.push([...head], ...rows.map((row) => row.map(printable)));
  const lines = table.toString().split('\n');
  return `${lines.map((line) => line.trimEnd()).join('\n')}\n`;
}

/** `Name:  value` lines with the values below each other; rows without a value are left out. */
export function toFacts(facts: readonly (readonly [string, string | undefined])[]): string {
  const shown = facts.filter((fact): fact is [string, string] => fact[1] !== undefined && fact[1] !== '');
  const lines = shown.map(([name, value]) => [printable(name), printable(value)] as const);
  const width = Math.max(0, ...lines.map(([name]) => name.length)) + 2;
  return lines.map(([name, value]) => `${`${name}:`.padEnd(width)}${value}\n`).join('');
}
