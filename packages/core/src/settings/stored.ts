import { formatDuration, parseDuration } from '../time/duration.ts';
import type { ValueOf } from './define-settings.ts';
import type { Field, FieldKind, FieldValue } from './field.ts';
import {
  bool,
  durationText,
  listOf,
  members,
  noNul,
  oneOf,
  optional,
  orEmpty,
  recordOf,
  wholeNumber,
  withDefault,
  type Optionals,
  type Shape,
  type ShapeType,
} from './shape.ts';

/** The rows that a stored document of this release has. */
type Stored<Rows extends readonly Field[]> = Extract<
  Exclude<Rows[number], { readonly notYet: true }>,
  Field & { readonly key: string }
>;

type FileValue<F extends Field> = F['kind'] extends 'duration' ? string : ValueOf<F>;

type StoredValue<F extends Field> = F extends { readonly stored: infer S }
  ? ShapeType<S>
  : F extends { readonly sparse: true }
    ? FileValue<F> | undefined
    : F extends { readonly kind: 'list' | 'strings' | 'pairs' } | { readonly default: FieldValue }
      ? FileValue<F>
      : FileValue<F> | undefined;

type NestedKey = `${string}.${string}`;
type ParentOf<Key> = Key extends `${infer Parent}.${string}` ? Parent : never;

type Flat<F extends Field & { readonly key: string }> = Optionals<{
  readonly [Row in F as Row['key'] extends NestedKey ? never : Row['key']]: StoredValue<Row>;
}>;

type Nested<F extends Field & { readonly key: string }> = {
  readonly [Parent in ParentOf<F['key']>]?: {
    readonly [Row in F as Row['key'] extends `${Parent}.${infer Child}` ? Child : never]?: StoredValue<Row>;
  };
};

/** What a stored document is, computed from the rows that have a key. */
export type StoredOf<Rows extends readonly Field[]> = Flat<Stored<Rows>> & Nested<Stored<Rows>>;

const float: Shape<number> = (value, fail) => (typeof value === 'number' ? value : fail('must be a number'));

const SHAPES: Readonly<Record<FieldKind, Shape<unknown>>> = {
  string: noNul,
  path: noNul,
  'json-file': noNul,
  choice: noNul,
  int: wholeNumber(),
  float,
  bool,
  duration: durationText(),
  strings: listOf(noNul),
  list: listOf(noNul),
  pairs: recordOf(noNul),
  json: (value) => value,
};

function shapeOfKind({ kind, choices, min, max }: Field): Shape<unknown> {
  if (choices !== undefined) return oneOf(...choices);
  if (kind === 'duration') return durationText(min, max);
  return kind === 'int' ? wholeNumber(min, max) : SHAPES[kind];
}

/** How a stored document holds the value of a row. */
function shapeOf(row: Field, nested: boolean): Shape<unknown> {
  if (row.stored !== undefined) return row.stored;
  const shape = shapeOfKind(row);
  // The presence of an object may itself mean something, so no default makes it appear.
  if (nested || row.sparse) return optional(shape);
  const { kind } = row;
  if (kind === 'list' || kind === 'strings') return orEmpty(shape, []);
  if (kind === 'pairs') return orEmpty(shape, {});
  return row.default === undefined ? optional(shape) : withDefault(shape, toStored(row, row.default));
}

/** The rows with a key whose behaviour is there. */
export function storedRows(rows: readonly Field[]): readonly (Field & { readonly key: string })[] {
  return rows.filter(
    (row): row is Field & { readonly key: string } => row.key !== undefined && row.notYet !== true,
  );
}

/**
 * How a stored document is read by the rows: dotted keys are members of an object, which keeps what it has beside them.
 * An absent member is the row's default, except inside such an object.
 */
export function storedShape<const Rows extends readonly Field[]>(rows: Rows): Shape<StoredOf<Rows>> {
  const stored = storedRows(rows).map((row) => ({ row, path: row.key.split('.') }));
  const all = [...new Set(stored.map(({ path: [parent = ''] }) => parent))].map((parent) => {
    const below = stored.filter(({ path }) => path[0] === parent);
    const whole = below.find(({ path }) => path.length === 1);
    if (whole) return [parent, shapeOf(whole.row, false)];
    const shapes = below.map(({ row, path: [, child = ''] }) => [child, shapeOf(row, true)]);
    return [parent, optional(withRest(members(Object.fromEntries(shapes))))];
  });
  return members(Object.fromEntries(all)) as unknown as Shape<StoredOf<Rows>>;
}

/** An object that keeps what it has beside its known members. */
function withRest(shape: Shape<object>): Shape<object> {
  return (value, fail) => {
    const known = shape(value, fail);
    return { ...(value as object), ...known };
  };
}

/** A value of the program as the file has it. */
export function toStored({ kind }: Field, value: FieldValue): unknown {
  return kind === 'duration' && typeof value === 'number' ? formatDuration(value) : value;
}

/** Values by name as the file has them, those apart that hold their default. */
export function toDocument(
  rows: readonly Field[],
  values: Readonly<Record<string, unknown>>,
): Record<string, unknown> {
  const document: Record<string, unknown> = {};
  for (const row of storedRows(rows)) {
    const value = values[row.name] as FieldValue | undefined;
    if (value === undefined || value === row.default) continue;
    const [parent = '', child] = row.key.split('.');
    const stored = toStored(row, value);
    document[parent] = child === undefined ? stored : { ...(document[parent] as object), [child]: stored };
  }
  return document;
}

/** What the file has as a value of the program: the default where it has none. */
export function fromStored(row: Field, value: unknown): FieldValue | undefined {
  if (value === undefined) return row.default;
  return row.kind === 'duration' && typeof value === 'string' ? parseDuration(value) : (value as FieldValue);
}
