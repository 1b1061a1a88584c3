import { paint } from '../terminal/paint.ts';
import type { Field } from './field.ts';
import { availableChoices } from './parse-value.ts';
import { showDefault } from './show-value.ts';

export interface HelpPage {
  /** `skep run [flags] SERVER [-- ARGS...]` */
  readonly usage: string;
  /** One sentence without full stop. */
  readonly summary: string;
  /** Paragraphs below the usage line. */
  readonly description?: readonly string[];
  readonly examples?: readonly Example[];
  readonly rows: readonly Field[];
}

export interface Example {
  readonly command: string;
  readonly what: string;
}

export interface HelpStyle {
  /** Columns of the terminal. */
  readonly width: number;
  readonly color: boolean;
}

/** Flag texts longer than this stand on a line of their own. */
const LONGEST_FLAG = 34;

/** The whole help page of a command, newline-terminated. */
export function toHelp(page: HelpPage, style: HelpStyle): string {
  const blocks = [
    [page.summary],
    [`${paint('bold', 'Usage:', style.color)} ${page.usage}`],
    ...(page.description ?? []).map((paragraph) => wrapText(paragraph, style.width)),
    examples(page.examples ?? [], style),
    ...flagBlocks(page.rows, style),
    variableBlock(page.rows, style),
    laterBlock(page.rows, style),
  ];
  const filled = blocks.filter((block) => block.length > 0);
  return `${filled.map((block) => block.join('\n')).join('\n\n')}\n`;
}

function examples(list: readonly Example[], style: HelpStyle): string[] {
  if (list.length === 0) return [];
  const lines = list.map(({ command, what }) => [`  ${command}`, paint('dim', `      ${what}`, style.color)]);
  return [paint('bold', 'Examples:', style.color), ...lines.flat()];
}

/** The groups in the order of their first row. */
export function groupsOf(rows: readonly Field[]): string[] {
  return [...new Set(rows.map((row) => row.group))];
}

function flagBlocks(rows: readonly Field[], style: HelpStyle): string[][] {
  const flags = rows.filter((row) => row.flag !== undefined);
  const column = 2 + Math.max(0, ...flags.map((row) => Math.min(flagText(row).length, LONGEST_FLAG)));
  return groupsOf(flags).map((group) => [
    paint('bold', `${group}:`, style.color),
    ...flags.filter((row) => row.group === group).flatMap((row) => flagLines(row, column, style)),
  ]);
}

function flagLines(row: Field, column: number, style: HelpStyle): string[] {
  const left = `  ${flagText(row)}`;
  const lines = inColumn(left, describe(row), column + 2, style);
  return row.notYet === true ? lines.map((line) => paint('dim', line, style.color)) : lines;
}

/** The text from a column on, behind what stands left of it, or below where that is too long. */
function inColumn(left: string, text: string, column: number, style: HelpStyle): string[] {
  const [first = '', ...more] = wrapText(text, Math.max(20, style.width - column));
  const below = more.map((line) => ' '.repeat(column) + line);
  if (left.length <= column - 2) return [left.padEnd(column) + first, ...below];
  return [left, ' '.repeat(column) + first, ...below];
}

/** `-e, --env KEY=VALUE`, aligned so that long flags stand below each other. */
export function flagText(row: Field): string {
  const short = row.short === undefined ? '    ' : `-${row.short}, `;
  const placeholder = row.kind === 'bool' ? '' : ` ${placeholderOf(row)}`;
  return `${short}--${row.flag ?? ''}${placeholder}`;
}

/** What stands for the value: the row's own word, the choices, or its kind. */
export function placeholderOf(row: Field): string {
  if (row.placeholder !== undefined) return row.placeholder;
  if (row.choices !== undefined) return row.choices.join('|');
  return row.kind === 'float' || row.kind === 'int' ? 'number' : row.kind;
}

/** Brief with everything else that matters in brackets. */
export function describe(row: Field): string {
  const value = showDefault(row);
  const notes = [
    // else the placeholder lists them
    row.choices === undefined || row.placeholder === undefined ? '' : availableChoices(row).join(', '),
    // "false" is what leaving a switch out means anyway
    value === undefined || (row.kind === 'bool' && value === 'false') ? '' : `default: ${value}`,
    row.env === undefined ? '' : `env: ${row.env}`,
    row.secret === true ? 'secret' : '',
    row.deprecated === undefined ? '' : `deprecated: ${row.deprecated}`,
    row.notYetValues === undefined ? '' : `later: ${row.notYetValues.join(', ')}`,
    row.notYet === true ? 'later' : '',
  ].filter((note) => note !== '');
  const brief = row.required === true ? `${row.brief}; required` : row.brief;
  return notes.length === 0 ? brief : `${brief} (${notes.join('; ')})`;
}

/** Settings that only a variable sets. */
function variableBlock(rows: readonly Field[], style: HelpStyle): string[] {
  const only = rows.filter((row) => row.flag === undefined && row.env !== undefined);
  if (only.length === 0) return [];
  const column = Math.max(...only.map((row) => row.env?.length ?? 0)) + 4;
  const lines = only.flatMap((row) => {
    const { env, ...withoutEnv } = row;
    return inColumn(`  ${env ?? ''}`, describe({ placeholder: '', ...withoutEnv }), column, style);
  });
  return [paint('bold', 'Environment variables:', style.color), ...lines];
}

/** Says once what the word "later" at a flag means. */
function laterBlock(rows: readonly Field[], style: HelpStyle): string[] {
  const some = rows.some((row) => row.notYet === true || row.notYetValues !== undefined);
  return some
    ? wrapText('"later": arrives with a coming release and is refused until then.', style.width)
    : [];
}

/** Lines of at most `width` columns, broken at spaces; a longer word stands alone. */
export function wrapText(text: string, width: number, widthOf = (part: string) => part.length): string[] {
  const lines: string[] = [];
  let line = '';
  for (const word of text.split(/\s+/u).filter((part) => part !== '')) {
    if (line !== '' && widthOf(`${line} ${word}`) > width) {
      lines.push(line);
      line = word;
    } else line = line === '' ? word : `${line} ${word}`;
  }
  return line === '' ? lines : [...lines, line];
}
