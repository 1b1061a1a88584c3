import { isSecretName, redactText } from '@skep/core/log/redact.ts';
import type { Field, FieldValue, Setting } from '@skep/core/settings/field.ts';
import { labelOf } from '@skep/core/settings/merge.ts';
import { showValue } from '@skep/core/settings/show-value.ts';
import { wrapText } from '@skep/core/settings/to-help.ts';
import { printable } from '@skep/core/terminal/printable.ts';
import { displayWidth, toTable, type Screen } from '../print/table.ts';
import { isPackageReference } from '../protocol/reference.ts';
import type { NewWorkload } from './plan.ts';
import { runSettings } from '../settings/run-settings.ts';

const MASKED = '********';
const INDENT = '  ';

/**
 * A line for each setting that somebody gave: its key, its value, who gave it, and what it was taken instead of. Mappings
 * of names, such as variables, have a line for each name. Values of variables that are secret, by the catalogue's word or
 * by their name, are masked. Where the table does not fit the screen, each line is two.
 */
export function explainPlan(
  { settings, env }: Pick<NewWorkload, 'settings' | 'env'>,
  screen: Screen,
): string {
  const secret = new Set(env.requirements.filter((one) => one.secret).map((one) => one.name));
  const rows: readonly Field[] = runSettings;
  const lines = rows.flatMap((row) => {
    const setting = settings.get(row.name);
    if (setting === undefined || setting.origin === 'default' || row.name === 'explain') return [];
    return linesOf(row, setting, secret);
  });
  const table = toTable(['SETTING', 'VALUE', 'FROM', 'INSTEAD OF'], lines);
  if (table.split('\n').every((line) => displayWidth(line) <= screen.widthOut)) return table;
  // Where each comes from is all that is asked for, so nothing of it is cut.
  return lines
    .map(([title = '', value = '', from = '', over = '']) => {
      const source = printable(`from ${from}${over === '' ? '' : `, instead of ${over}`}`);
      const below = wrapText(source, screen.widthOut - INDENT.length, displayWidth);
      return `${printable(`${title}: ${value}`)}\n${below.map((line) => `${INDENT}${line}\n`).join('')}`;
    })
    .join('');
}

function linesOf(row: Field, { over = [], ...first }: Setting, secret: ReadonlySet<string>): string[][] {
  const said = [first, ...over];
  const title = row.key ?? row.flag ?? row.name;
  if (!said.every(({ value }) => isMapping(value))) {
    const byDefault: readonly Setting[] =
      row.default === undefined ? [] : [{ value: row.default, origin: 'default' }];
    return [lineOf(title, [...said, ...byDefault], row)];
  }
  const names = new Set(said.flatMap(({ value }) => Object.keys(value)));
  return [...names].map((name) => {
    const own = said.flatMap(({ value, ...rest }): Setting[] => {
      const one = isMapping(value) ? value[name] : undefined;
      return one === undefined
        ? []
        : [{ ...rest, value: typeof one === 'string' ? one : JSON.stringify(one) }];
    });
    return lineOf(`${title}.${name}`, own, { ...row, secret: secret.has(name) || isSecretName(name) });
  });
}

const isMapping = (value: FieldValue): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && !Array.isArray(value);

function lineOf(title: string, [first, ...over]: readonly Setting[], row: Field): string[] {
  const shown = ({ value }: Setting): string => {
    if (row.secret === true) return MASKED;
    const alone = isMapping(value) || typeof value !== 'object';
    const text = showValue(row, alone ? value : value.map(maskArgument));
    // Checked by now, so the @ of a package is before its scope or its version and ends no login.
    return row.key === 'image' && isPackageReference(text) ? text : redactText(text);
  };
  const others = over.map((setting) => `${shown(setting)} (${fromOf(row, setting)})`);
  return first === undefined ? [] : [title, shown(first), fromOf(row, first), others.join(', ')];
}

function fromOf(row: Field, { origin, place }: Setting): string {
  if (place !== undefined) return place;
  if (origin === 'default') return 'default';
  return origin === 'env' ? (row.env ?? '') : labelOf(row);
}

/** An argument such as `--api-key=…`, or the one behind `--api-key`, says nothing. */
function maskArgument(argument: string, index: number, all: readonly string[]): string {
  const [name = '', value] = argument.split(/=(.*)/s);
  if (value !== undefined) return isSecretName(name) ? `${name}=${MASKED}` : argument;
  const before = all[index - 1] ?? '';
  const belongs = /^-[^=]*$/.test(before) && !name.startsWith('-');
  return belongs && isSecretName(before) ? MASKED : name;
}
