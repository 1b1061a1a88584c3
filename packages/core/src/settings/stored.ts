import { formatDuration, parseDuration } from '../time/duration.ts';
import type { ValueOf } from './define-settings.ts';
import type { Field, FieldKind, FieldValue } from './field.ts';
import {
  bool,
  listOf,
  members,
  noNul,
  oneOf,
  optional,
  orEmpty,
  recordOf,
  textThat,
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

const MAX_TIMER_MS = 2 ** 31 - 1;

/** Go's notation, as people write it. */
const duration = textThat((text) => {
  try {
    const milliseconds = parseDuration(text);
    return milliseconds >= 1 && milliseconds <= MAX_TIMER_MS;
  } catch {
    return false;
  }
}, 'is not a duration such as 30s or 2m30s');

const float: Shape<number> = (value, fail) => (typeof value === 'number' ? value : fail('must be a number'));

const SHAPES: Readonly<Record<FieldKind, Shape<unknown>>> = {
  string: noNul,
  path: noNul,
  'json-file': noNul,
  choice: noNul,
  int: wholeNumber(Number.MIN_SAFE_INTEGER, Number.MAX_SAFE_INTEGER),
  float,
  bool,
  duration,
  strings: listOf(noNul),
  list: listOf(noNul),
  pairs: recordOf(noNul),
  json: (value) => value,
};

function shapeOf(row: Field, nested: boolean): Shape<unknown> {
  if (row.stored !== undefined) return row.stored;
  const { kind, choices, min = Number.MIN_SAFE_INTEGER, max = Number.MAX_SAFE_INTEGER } = row;
  const ofKind = kind === 'int' ? wholeNumber(min, max) : SHAPES[kind];
  const shape = choices === undefined ? ofKind : oneOf(...choices);
  // The presence of an object may itself mean something, so no default makes it appear.
  if (nested) return optional(shape);
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
    return [parent, optional(members(Object.fromEntries(shapes), 'kept'))];
  });
  return members(Object.fromEntries(all), 'left out') as unknown as Shape<StoredOf<Rows>>;
}

/** A value of the program as the file has it. */
export function toStored({ kind }: Field, value: FieldValue): unknown {
  return kind === 'duration' && typeof value === 'number' ? formatDuration(value) : value;
}
