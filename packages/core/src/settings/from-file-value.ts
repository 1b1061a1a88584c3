import type { Field, FieldKind, FieldValue } from './field.ts';
import { holdsAnyway } from './holds-anyway.ts';
import { checkValue, invalid, parseValue, type Where } from './parse-value.ts';
import { SkepError } from '../errors/skep-error.ts';

type Decode = (field: Field, value: unknown, where: Where) => FieldValue;

const text = must('text', (value) => typeof value === 'string');
const number = must('a number', (value) => typeof value === 'number' && Number.isFinite(value));
const texts = must('a list of texts', isTextList);

const DECODE: Readonly<Record<FieldKind, Decode>> = {
  string: text,
  path: text,
  'json-file': text,
  choice: text,
  int: must('a whole number', (value) => Number.isSafeInteger(value)),
  float: number,
  bool: must('true or false', (value) => typeof value === 'boolean'),
  duration: (field, value, where) =>
    typeof value === 'string'
      ? parseValue(field, value, where)
      : fail(field, value, where, 'a duration such as 30s or 2m30s'),
  strings: (field, value, where) =>
    typeof value === 'string' ? parseValue(field, value, where) : texts(field, value, where),
  list: texts,
  pairs: must('a mapping of names to texts; put numbers in quotes', isTextMap),
  json: must('a value', (value) => value !== undefined),
};

/**
 * A typed value of a configuration file (JSON data model) as the field's value. Fails with `config/invalid`, or with
 * `usage/not-available` for a field or choice of a later release, unless the value is what happens anyway.
 */
export function fromFileValue(field: Field, value: unknown): FieldValue {
  const label = `key "${field.key ?? field.name}"`;
  const where: Where = { label, code: 'config/invalid' };
  const read = (): FieldValue => checkValue(field, DECODE[field.kind](field, value, where), where);
  return field.notYet === true ? holdsAnyway(field, read, notYet(label)) : read();
}

function notYet(label: string): SkepError {
  return new SkepError('usage/not-available', {
    message: `${label} is not available yet`,
    hint: 'leave the key out; a later version will have it',
  });
}

function must(what: string, accepts: (value: unknown) => boolean): Decode {
  return (field, value, where) => (accepts(value) ? (value as FieldValue) : fail(field, value, where, what));
}

function fail(field: Field, value: unknown, where: Where, what: string): never {
  if (value === null || value === undefined) {
    throw new SkepError('config/invalid', { message: `${where.label} has no value: it must be ${what}` });
  }
  throw invalid(
    field,
    where,
    typeof value === 'string' ? value : JSON.stringify(value),
    `it must be ${what}`,
  );
}

function isTextList(value: unknown): boolean {
  return Array.isArray(value) && value.every((item) => typeof item === 'string');
}

function isTextMap(value: unknown): boolean {
  return (
    typeof value === 'object' &&
    value !== null &&
    !Array.isArray(value) &&
    Object.values(value).every((item) => typeof item === 'string')
  );
}
