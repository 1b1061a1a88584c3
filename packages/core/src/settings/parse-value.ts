import type { Code } from '../errors/codes.ts';
import { hasCode, SkepError } from '../errors/skep-error.ts';
import { formatDuration, parseDuration } from '../time/duration.ts';
import type { Field, FieldKind, FieldValue } from './field.ts';

/** Where a value stands, for messages. */
export interface Where {
  /** `--proxy-port`, `SKEP_DEBUG` or `config.yaml:3:5: key "port"`. */
  readonly label: string;
  readonly code: Extract<Code, 'usage/invalid-value' | 'config/invalid'>;
}

/** The checked value of one occurrence of a flag or variable. */
export function parseValue(field: Field, text: string, where: Where): FieldValue {
  if (text.includes('\0')) throw invalid(field, where, text, 'it holds a NUL character');
  return checkValue(field, DECODE[field.kind](field, text, where), where);
}

/** Checks range, choices and availability. Fails with the code of `where`. */
export function checkValue(field: Field, value: FieldValue, where: Where): FieldValue {
  if (typeof value === 'number') checkRange(field, value, where);
  if (typeof value === 'string') checkChoice(field, value, where);
  return value;
}

/** All occurrences in one, in the order they were given: repeatable kinds collect, else the last wins. */
export function combine({ kind }: Field, values: readonly [FieldValue, ...FieldValue[]]): FieldValue {
  if (kind === 'list' || kind === 'strings') return values.flat() as readonly string[];
  // fromEntries defines members, so that a key named __proto__ stays data
  if (kind === 'pairs') return Object.fromEntries(values.flatMap((value) => Object.entries(value)));
  return values.at(-1) ?? values[0];
}

/** `invalid value "x" for --flag: why`; a secret's value is never quoted. */
export function invalid(field: Field, where: Where, value: string, why: string): SkepError {
  const quoted = field.secret === true ? '' : ` "${value}"`;
  return new SkepError(where.code, { message: `invalid value${quoted} for ${where.label}: ${why}` });
}

/** The choices that can be used now. */
export function availableChoices(field: Field): readonly string[] {
  return (field.choices ?? []).filter((choice) => field.notYetValues?.includes(choice) !== true);
}

type Decode = (field: Field, text: string, where: Where) => FieldValue;

const verbatim: Decode = (_field, text) => text;

const DECODE: Readonly<Record<FieldKind, Decode>> = {
  string: verbatim,
  path: verbatim,
  'json-file': verbatim,
  choice: verbatim,
  int: (field, text, where) => decodeNumber(field, text, where, /^[+-]?\d+$/u),
  float: (field, text, where) =>
    decodeNumber(field, text, where, /^[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?$/iu),
  bool: decodeBool,
  duration: decodeDuration,
  strings: (_field, text) => splitList(text),
  list: (_field, text) => [text],
  pairs: decodePair,
  json: verbatim,
};

/** The items of a comma-separated list, trimmed, empty ones left out. */
function splitList(text: string): readonly string[] {
  return text
    .split(',')
    .map((part) => part.trim())
    .filter((part) => part !== '');
}

function decodeNumber(field: Field, text: string, where: Where, pattern: RegExp): number {
  const value = pattern.test(text) ? Number(text) : Number.NaN;
  const fits = field.kind === 'int' ? Number.isSafeInteger(value) : Number.isFinite(value);
  if (!fits) throw invalid(field, where, text, `it must be a ${field.kind === 'int' ? 'whole ' : ''}number`);
  return value;
}

/** The words Go's `strconv.ParseBool` takes, which people bring along from other command lines. */
function decodeBool(field: Field, text: string, where: Where): boolean {
  if (/^(?:1|t|true)$/iu.test(text)) return true;
  if (/^(?:0|f|false)$/iu.test(text)) return false;
  throw invalid(field, where, text, 'it must be true or false');
}

function decodeDuration(field: Field, text: string, where: Where): number {
  try {
    return parseDuration(text);
  } catch (error) {
    if (!hasCode(error, 'usage/invalid-value')) throw error;
    throw invalid(field, where, text, `it must be a duration; ${error.hint}`);
  }
}

function decodePair(field: Field, text: string, where: Where): Readonly<Record<string, string>> {
  const at = text.indexOf('=');
  // Quoted, because without = it is most likely a bare name and no secret.
  if (at === -1) throw invalid(field, where, text, 'it must have the form KEY=VALUE');
  if (at === 0) throw invalid(field, where, text, 'the key before = is empty');
  return Object.fromEntries([[text.slice(0, at), text.slice(at + 1)]]);
}

function checkChoice(field: Field, value: string, where: Where): void {
  if (field.choices === undefined) return;
  if (!field.choices.includes(value)) {
    throw invalid(field, where, value, `it must be one of ${field.choices.join(', ')}`);
  }
  if (field.notYetValues?.includes(value) === true) {
    throw new SkepError('usage/not-available', {
      message: `the value "${value}" of ${where.label} is not available yet`,
      hint: `use ${availableChoices(field).join(' or ')}`,
    });
  }
}

function checkRange(field: Field, value: number, where: Where): void {
  const show = (limit: number): string => (field.kind === 'duration' ? formatDuration(limit) : String(limit));
  const { min, max } = field;
  if ((min === undefined || value >= min) && (max === undefined || value <= max)) return;
  const range =
    max === undefined
      ? `at least ${show(min ?? 0)}`
      : min === undefined
        ? `at most ${show(max)}`
        : `between ${show(min)} and ${show(max)}`;
  throw invalid(field, where, show(value), `it must be ${range}`);
}

/**
 * The value of a row whose behaviour comes with a later release, when it is what happens anyway: its default, "no", or
 * nothing. People bring such flags along from other tools. Any other value, one that cannot be read too, fails with
 * `refusal`.
 */
export function holdsAnyway(field: Field, read: () => FieldValue, refusal: SkepError): FieldValue {
  const value = readOr(read, refusal);
  if (value === field.default || value === false || value === '') return value;
  if (typeof value === 'object' && Object.keys(value).length === 0) return value;
  throw refusal;
}

function readOr(read: () => FieldValue, refusal: SkepError): FieldValue {
  try {
    return read();
  } catch (error) {
    if (error instanceof SkepError) throw refusal;
    throw error;
  }
}
