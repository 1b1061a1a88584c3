import type { Field } from '@skep/core/settings/field.ts';
import { showDefault } from '@skep/core/settings/show-value.ts';
import { groupsOf, placeholderOf } from '@skep/core/settings/to-help.ts';

/** Reference tables, one per group, in Markdown; columns that no row of the table uses are left out. */
export function toMarkdown(rows: readonly Field[]): string {
  return groupsOf(rows)
    .map((group) => `## ${group}\n\n${tableOf(rows.filter((row) => row.group === group))}`)
    .join('\n');
}

const COLUMNS: readonly { readonly title: string; readonly cell: (row: Field) => string }[] = [
  { title: 'Flag', cell: flagCell },
  { title: 'Type', cell: typeCell },
  { title: 'Default', cell: (row) => escapeCell(showDefault(row) ?? '') },
  { title: 'Meaning', cell: meaningCell },
  { title: 'Variable', cell: (row) => code(row.env) },
  { title: 'Key', cell: (row) => code(row.key) },
];

function tableOf(rows: readonly Field[]): string {
  const used = COLUMNS.filter(({ cell }) => rows.some((row) => cell(row) !== ''));
  return markdownTable(
    used.map(({ title }) => title),
    rows.map((row) => used.map(({ cell }) => cell(row))),
  );
}

/** A Markdown table; cells must be escaped already (`escapeCell`). */
export function markdownTable(titles: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]): string => `| ${cells.join(' | ')} |\n`;
  return line(titles) + line(titles.map(() => '---')) + rows.map(line).join('');
}

/** Text that stays in its cell. */
export function escapeCell(text: string): string {
  return text.replaceAll('|', '\\|').replaceAll('<', '&lt;').replace(/\s+/gu, ' ');
}

function flagCell(row: Field): string {
  if (row.flag === undefined) return '';
  return row.short === undefined
    ? code(`--${row.flag}`)
    : `${code(`-${row.short}`)}, ${code(`--${row.flag}`)}`;
}

function typeCell(row: Field): string {
  if (row.choices !== undefined) return row.choices.map(code).join(', ');
  if (row.placeholder === undefined) return row.kind;
  return `${row.kind} ${code(placeholderOf(row))}`;
}

function meaningCell(row: Field): string {
  const notes = [
    row.secret === true ? 'Secret.' : '',
    row.deprecated === undefined ? '' : `Deprecated: ${row.deprecated}.`,
    row.notYetValues === undefined ? '' : `Not available yet: ${row.notYetValues.join(', ')}.`,
    row.notYet === true ? '*Not available yet.*' : '',
  ].filter((note) => note !== '');
  return escapeCell([`${row.brief}.`, ...notes].join(' '));
}

function code(text: string | undefined): string {
  return text === undefined ? '' : `\`${text.replaceAll('|', '\\|')}\``;
}
