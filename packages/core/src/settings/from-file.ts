import type * as Yaml from 'yaml';
import type { Document, LineCounter, Node, ParsedNode, YAMLMap } from 'yaml';
import { hasCode, SkepError } from '../errors/skep-error.ts';
import { isRecord } from '../json/is-record.ts';
import { jsonErrorPlace, type Place } from '../json/judge.ts';
import { suggestion } from './did-you-mean.ts';
import type { Field, Setting, Settings, FieldKind, FieldValue } from './field.ts';
import { checkValue, invalid, parseValue, holdsAnyway, type Where } from './parse-value.ts';

export interface SettingsFile {
  /** For messages. */
  readonly path: string;
  readonly text: string;
  readonly format: 'yaml' | 'json';
}

interface Reading {
  readonly yaml: typeof Yaml;
  readonly rows: readonly Field[];
  readonly document: Document.Parsed;
  readonly lines: LineCounter;
  readonly settings: Map<string, Setting>;
  readonly problems: SkepError[];
}

/**
 * Settings of a configuration file by the rows' keys, origin `file`; dotted keys are nested maps. Keys keep their case.
 * Fails with `config/invalid` naming every problem as `path:line:column` (syntax, unknown key, wrong type, duplicate
 * key, alias bomb), or with `usage/not-available` when a key of a later release is the only one.
 */
export async function fromFile(rows: readonly Field[], file: SettingsFile): Promise<Settings> {
  const broken = file.format === 'json' ? jsonErrorPlace(file.text) : undefined;
  if (broken !== undefined) throw invalidFile(file, broken, 'not valid JSON');
  // Most people have no file, and need no parser.
  if (file.text === '') return new Map();
  const plain = file.format === 'yaml' ? fromPlainLines(rows, file.text) : undefined;
  if (plain !== undefined) return plain;
  const yaml = await import('yaml');
  const lines = new yaml.LineCounter();
  // JSON is YAML 1.2, whose parser also keeps the places of keys and sees duplicates
  const document = yaml.parseDocument(file.text, { lineCounter: lines, version: '1.2', schema: 'core' });
  const reading: Reading = { yaml, rows, document, lines, settings: new Map(), problems: [] };
  checkSyntax(reading, file);
  const root = document.contents;
  if (yaml.isMap(root)) readMap(reading, root, '');
  else if (root !== null)
    reading.problems.push(problem('it must be a mapping of keys to values', root, reading));
  throwProblems(reading.problems, file);
  return reading.settings;
}

/** A line whose value every YAML parser reads as these very characters, or as true and false. */
const PLAIN_LINE = /^([a-z_]+): (true|false|(?:https?:\/)?\/[\w./-]+)$/;

/**
 * The settings of a file as Skep itself writes it: keys and addresses, paths or flags, for which loading a parser would
 * take longer than all else that a command does. Undefined for every other text, and for whatever is wrong with it.
 */
function fromPlainLines(rows: readonly Field[], text: string): Settings | undefined {
  const settings = new Map<string, Setting>();
  for (const line of text.split('\n')) {
    if (line === '' || /^#[\x20-\x7e]*$/.test(line)) continue;
    const [, key, value] = PLAIN_LINE.exec(line) ?? [];
    const row = rows.find((one) => one.key !== undefined && one.key === key);
    if (row === undefined || value === undefined || settings.has(row.name)) return undefined;
    try {
      const plain = value === 'true' ? true : value === 'false' ? false : value;
      settings.set(row.name, { value: fromFileValue(row, plain), origin: 'file' });
    } catch {
      return undefined;
    }
  }
  return settings;
}

/** Warnings count too: an unknown tag would silently become text. */
function checkSyntax(reading: Reading, file: SettingsFile): void {
  const first = [...reading.document.errors, ...reading.document.warnings][0];
  if (first === undefined) return;
  const { line, col } = reading.lines.linePos(first.pos[0]);
  // The library repeats the place and shows the source line after the first line
  const why = (first.message.split('\n')[0] ?? '').replace(/ at line \d+, column \d+:?$/u, '');
  throw invalidFile(file, { line, column: col }, why);
}

function readMap(reading: Reading, map: YAMLMap.Parsed | YAMLMap, prefix: string): void {
  for (const pair of map.items) {
    const { key, value } = pair;
    if (!reading.yaml.isScalar(key) || typeof key.value !== 'string') {
      reading.problems.push(problem('keys must be text', reading.yaml.isNode(key) ? key : map, reading));
      continue;
    }
    const path = prefix + key.value;
    const row = reading.rows.find((candidate) => candidate.key === path);
    const node = resolve(reading, value);
    if (row !== undefined) readValue(reading, row, { key, node });
    else if (reading.rows.some((one) => one.key?.startsWith(`${path}.`)))
      readNested(reading, path, { key, node });
    else reading.problems.push(unknownKey(reading, key, prefix, key.value));
  }
}

interface Found {
  readonly key: Node;
  readonly node: Node | undefined;
}

function readNested(reading: Reading, path: string, { key, node }: Found): void {
  if (reading.yaml.isMap(node)) readMap(reading, node, `${path}.`);
  else reading.problems.push(problem(`key "${path}" must be a mapping`, key, reading));
}

function readValue(reading: Reading, row: Field, { key, node }: Found): void {
  try {
    const plain: unknown = node?.toJS(reading.document, { maxAliasCount: 100 });
    reading.settings.set(row.name, { value: fromFileValue(row, plain), origin: 'file' });
  } catch (error) {
    if (hasCode(error, 'config/invalid') || hasCode(error, 'usage/not-available')) {
      reading.problems.push(placed(error, node ?? key, reading));
    } else if (error instanceof ReferenceError) {
      // what the library throws for too many aliases
      reading.problems.push(problem('too many aliases', key, reading));
    } else throw error;
  }
}

/** What an alias stands for. No loop of aliases is followed: only known keys are descended into. */
function resolve(reading: Reading, node: unknown): Node | undefined {
  if (reading.yaml.isAlias(node)) return node.resolve(reading.document);
  return reading.yaml.isNode(node) ? node : undefined;
}

function unknownKey(reading: Reading, key: Node, prefix: string, name: string): SkepError {
  const siblings = reading.rows.flatMap(({ key: known }) =>
    known?.startsWith(prefix) ? (known.slice(prefix.length).split('.')[0] ?? '') : [],
  );
  const hint = suggestion(name, siblings, 'remove it, or correct its spelling');
  return problem(`unknown key "${prefix}${name}"`, key, reading, hint);
}

function problem(message: string, node: Node | ParsedNode, reading: Reading, hint?: string): SkepError {
  return placed(new SkepError('config/invalid', { message, hint }), node, reading);
}

function placed(error: SkepError, node: Node | ParsedNode, reading: Reading): SkepError {
  const { line, col } = reading.lines.linePos(node.range?.[0] ?? 0);
  const { code, hint } = error;
  return new SkepError(code, { message: `${line}:${col}: ${error.message}`, hint });
}

function throwProblems(problems: readonly SkepError[], file: SettingsFile): void {
  const [first] = problems;
  if (first === undefined) return;
  const messages = problems.map((each) => `${file.path}:${each.message}`);
  throw new SkepError(problems.length === 1 ? first.code : 'config/invalid', {
    message: messages.join('; '),
    hint: first.hint,
    detail: { problems: messages },
  });
}

function invalidFile(file: SettingsFile, place: Place, why: string): SkepError {
  const message = `${file.path}:${place.line}:${place.column}: ${why}`;
  return new SkepError('config/invalid', { message });
}

type Decode = (field: Field, value: unknown, where: Where) => FieldValue;

const text = must('text', isText);
const texts = must('a list of texts', (value) => Array.isArray(value) && value.every(isText));

const DECODE: Readonly<Record<FieldKind, Decode>> = {
  string: text,
  path: text,
  'json-file': text,
  choice: text,
  int: must('a whole number', Number.isSafeInteger),
  float: must('a number', Number.isFinite),
  bool: must('true or false', (value) => typeof value === 'boolean'),
  duration: (field, value, where) =>
    typeof value === 'string'
      ? parseValue(field, value, where)
      : fail(field, value, where, 'a duration such as 30s or 2m30s'),
  strings: (field, value, where) =>
    typeof value === 'string' ? parseValue(field, value, where) : texts(field, value, where),
  list: texts,
  pairs: must(
    'a mapping of names to texts; put numbers in quotes',
    (value) => isRecord(value) && Object.values(value).every(isText),
  ),
  json: must('a value', (value) => value !== undefined),
};

/**
 * A typed value of a configuration file (JSON data model) as the field's value. Fails with `config/invalid`, or with
 * `usage/not-available` for a field or choice of a later release, unless the value is what happens anyway.
 */
function fromFileValue(field: Field, value: unknown): FieldValue {
  const label = `key "${field.key ?? field.name}"`;
  const where: Where = { label, code: 'config/invalid' };
  const read = (): FieldValue => checkValue(field, DECODE[field.kind](field, value, where), where);
  if (field.notYet !== true) return read();
  const hint = 'leave the key out; a later version will have it';
  const refusal = new SkepError('usage/not-available', { message: `${label} is not available yet`, hint });
  return holdsAnyway(field, read, refusal);
}

function must(what: string, accepts: (value: unknown) => boolean): Decode {
  return (field, value, where) => (accepts(value) ? (value as FieldValue) : fail(field, value, where, what));
}

function fail(field: Field, value: unknown, where: Where, what: string): never {
  if (value === null || value === undefined) {
    throw new SkepError('config/invalid', { message: `${where.label} has no value: it must be ${what}` });
  }
  throw invalid(field, where, isText(value) ? value : JSON.stringify(value), `it must be ${what}`);
}

function isText(value: unknown): value is string {
  return typeof value === 'string';
}
