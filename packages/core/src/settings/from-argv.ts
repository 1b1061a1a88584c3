import { parseArgs, type ParseArgsOptionDescriptor } from 'node:util';
import { SkepError } from '../errors/skep-error.ts';
import { suggestion } from './did-you-mean.ts';
import type { Field, FieldValue, Setting, Settings } from './field.ts';
import { combine, parseValue, holdsAnyway } from './parse-value.ts';
import { checkExcludes } from './merge.ts';

export interface Positional {
  /** As help shows it: `SERVER`, `NAME`. */
  readonly name: string;
  readonly required?: boolean;
  /** Takes all further arguments; only for the last one. */
  readonly variadic?: boolean;
}

export interface ArgvShape {
  readonly rows: readonly Field[];
  readonly positionals?: readonly Positional[];
  /** True: what follows the first `--` is passed on. False: it is positional. */
  readonly rest?: boolean;
}

export interface FromArgv {
  /** Only what was given, origin `flag`. */
  readonly settings: Settings;
  readonly positionals: readonly string[];
  /** Everything after the first `--`, verbatim; undefined when nothing follows it. */
  readonly rest: readonly string[] | undefined;
  /** Lines for stderr: deprecated flags. */
  readonly warnings: readonly string[];
  /** True when help was asked for; then nothing else was checked. */
  readonly help: boolean;
}

/** What each flag was given, as often as it was. */
type Given = Map<Field, [FieldValue, ...FieldValue[]]>;

type Token = ReturnType<typeof tokenize>[number];

/**
 * Reads a command's arguments (without program and command name) by its table. Takes `--flag value`, `--flag=value`,
 * `-f value`, `-fvalue`, `-f=value`, bundled short switches and `--switch=true|false`; a flag that is given twice
 * collects when its kind is repeatable, else the last wins. A row named `help` ends reading.
 *
 * Fails with `usage/unknown-flag`, `usage/missing-argument`, `usage/unexpected-argument`, `usage/invalid-value`,
 * `usage/conflict` or `usage/not-available`, each naming the flag as it was written.
 */
export function fromArgv(shape: ArgvShape, argv: readonly string[]): FromArgv {
  const end = argv.indexOf('--');
  const before = end === -1 ? argv : argv.slice(0, end);
  const after = end === -1 ? [] : argv.slice(end + 1);
  const tokens = tokenize(shape.rows, before);
  if (tokens.some((token) => fieldOf(shape.rows, token)?.name === 'help')) {
    return { settings: new Map(), positionals: [], rest: undefined, warnings: [], help: true };
  }
  const given: Given = new Map();
  const warnings = new Set<string>();
  const positionals: string[] = [];
  for (const token of tokens) {
    if (token.kind === 'positional') positionals.push(token.value);
    else if (token.kind === 'option') readFlag(shape.rows, token, given, warnings);
  }
  const settings = new Map<string, Setting>();
  for (const [field, values] of given)
    settings.set(field.name, { value: combine(field, values), origin: 'flag' });
  if (shape.rest !== true) positionals.push(...after);
  checkPositionals(shape, positionals);
  checkExcludes(shape.rows, settings);
  const rest = shape.rest === true && after.length > 0 ? after : undefined;
  return { settings, positionals, rest, warnings: [...warnings], help: false };
}

/** Node's tokenizer knows bundles, inline values and values that start with a dash. */
function tokenize(rows: readonly Field[], args: readonly string[]) {
  const options: Record<string, ParseArgsOptionDescriptor> = {};
  for (const { flag, kind, short } of rows) {
    const type = kind === 'bool' ? 'boolean' : 'string';
    if (flag !== undefined) options[flag] = short === undefined ? { type } : { type, short };
  }
  return parseArgs({
    args: [...args],
    options,
    strict: false,
    allowPositionals: true,
    tokens: true,
  }).tokens;
}

function fieldOf(rows: readonly Field[], token: Token): Field | undefined {
  if (token.kind !== 'option') return undefined;
  return rows.find(
    (row) => row.flag !== undefined && [`--${row.flag}`, `-${row.short ?? '-'}`].includes(token.rawName),
  );
}

function readFlag(
  rows: readonly Field[],
  token: Extract<Token, { kind: 'option' }>,
  given: Given,
  warnings: Set<string>,
): void {
  const field = fieldOf(rows, token);
  if (field === undefined) throw unknownFlag(rows, token.rawName);
  if (field.deprecated !== undefined) warnings.add(`${token.rawName} is deprecated: ${field.deprecated}`);
  const where = { label: token.rawName, code: 'usage/invalid-value' } as const;
  const read = (): FieldValue => parseValue(field, textOf(field, token), where);
  const value = field.notYet === true ? holdsAnyway(field, read, notYet(token.rawName)) : read();
  const earlier = given.get(field);
  if (earlier) earlier.push(value);
  else given.set(field, [value]);
}

function notYet(flag: string): SkepError {
  return new SkepError('usage/not-available', { message: `the flag "${flag}" is not available yet` });
}

function textOf(field: Field, token: Extract<Token, { kind: 'option' }>): string {
  if (token.value === undefined) {
    if (field.kind === 'bool') return 'true';
    throw new SkepError('usage/missing-argument', { message: `the flag "${token.rawName}" needs a value` });
  }
  // `-e=A=1`: the first = belongs to the flag, as in `--env=A=1`
  const shortInline = token.inlineValue && !token.rawName.startsWith('--') && token.value.startsWith('=');
  return shortInline ? token.value.slice(1) : token.value;
}

function unknownFlag(rows: readonly Field[], given: string): SkepError {
  const known = rows.flatMap((row) => [
    ...(row.flag === undefined ? [] : [`--${row.flag}`]),
    ...(row.short === undefined ? [] : [`-${row.short}`]),
  ]);
  return new SkepError('usage/unknown-flag', {
    message: `unknown flag "${given}"`,
    hint: suggestion(
      given,
      // one letter is close to every other letter
      known.filter((flag) => flag.startsWith('--')),
      'run the command with --help to see its flags; put arguments for the server after --',
    ),
  });
}

function checkPositionals(shape: ArgvShape, given: readonly string[]): void {
  const expected = shape.positionals ?? [];
  const missing = expected.find((positional, index) => positional.required === true && index >= given.length);
  if (missing !== undefined) {
    throw new SkepError('usage/missing-argument', { message: `missing argument ${missing.name}` });
  }
  const extra = expected.at(-1)?.variadic === true ? undefined : given[expected.length];
  if (extra !== undefined) {
    throw new SkepError('usage/unexpected-argument', {
      message: `unexpected argument "${extra}"`,
      ...(shape.rest === true ? {} : { hint: 'run the command with --help to see its arguments' }),
    });
  }
}
