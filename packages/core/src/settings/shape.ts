import { SkepError } from '../errors/skep-error.ts';
import { isRecord } from '../json/is-record.ts';
import { MAX_TIMER_MS } from '../time/clock.ts';
import { parseDuration } from '../time/duration.ts';

/** Refuses a value: why, and the path below it that leads to what is wrong. */
export type Fail = (why: string, ...path: readonly (string | number)[]) => never;

/**
 * Reads one member of a stored document (JSON data model), undefined where the document has none. Shapes are used where
 * zod would do, because a command that lists workloads must not wait for zod to be loaded.
 */
export type Shape<T> = (value: unknown, fail: Fail) => T;

export type ShapeType<S> = S extends Shape<infer T> ? T : never;

/** Object members by shape; those whose shape may answer undefined are optional. */
export type MembersOf<Shapes extends Readonly<Record<string, Shape<unknown>>>> = Optionals<{
  readonly [Name in keyof Shapes]: ShapeType<Shapes[Name]>;
}>;

/** `{ a: X | undefined }` as `{ a?: X }`. */
export type Optionals<T> = {
  readonly [Name in keyof T as undefined extends T[Name] ? never : Name]: T[Name];
} & { readonly [Name in keyof T as undefined extends T[Name] ? Name : never]?: Exclude<T[Name], undefined> };

function must(value: unknown, what: string, fail: Fail): never {
  return fail(value === undefined ? 'is missing' : `must be ${what}`);
}

export const text: Shape<string> = (value, fail) =>
  typeof value === 'string' ? value : must(value, 'text', fail);

export const bool: Shape<boolean> = (value, fail) =>
  typeof value === 'boolean' ? value : must(value, 'true or false', fail);

/** Text that `accepts` takes; `why` says what is wrong with any other. */
export function textThat(accepts: (value: string) => boolean, why: string): Shape<string> {
  return (value, fail) => {
    const read = text(value, fail);
    return accepts(read) ? read : fail(why);
  };
}

/** Text that can be handed to a program: the kernel ends it at a NUL. */
export const noNul = textThat((value) => !value.includes('\0'), 'contains NUL');

export function wholeNumber(min = Number.MIN_SAFE_INTEGER, max = Number.MAX_SAFE_INTEGER): Shape<number> {
  return (value, fail) =>
    typeof value === 'number' && Number.isSafeInteger(value) && value >= min && value <= max
      ? value
      : must(value, `a whole number from ${min} to ${max}`, fail);
}

/** A duration in Go's notation, between two numbers of milliseconds. */
export function durationText(min = 1, max = MAX_TIMER_MS): Shape<string> {
  return textThat((value) => {
    try {
      const milliseconds = parseDuration(value);
      return milliseconds >= min && milliseconds <= max;
    } catch {
      return false;
    }
  }, 'is not a duration such as 30s or 2m30s');
}

export function oneOf<const Choice extends string>(...choices: readonly Choice[]): Shape<Choice> {
  return (value, fail) =>
    choices.find((choice) => choice === value) ?? must(value, `one of ${choices.join(', ')}`, fail);
}

export function listOf<T>(item: Shape<T>): Shape<readonly T[]> {
  return (value, fail) =>
    Array.isArray(value)
      ? value.map((one, index) => item(one, (why, ...path) => fail(why, index, ...path)))
      : must(value, 'a list', fail);
}

/** A mapping of names to values; a name that `named` does not take is refused. */
export function recordOf<T>(
  item: Shape<T>,
  named: (name: string) => boolean = () => true,
): Shape<Readonly<Record<string, T>>> {
  return (value, fail) => {
    if (!isRecord(value)) return must(value, 'a mapping of names to values', fail);
    const entries = Object.entries(value).map(([name, one]) => [
      name,
      named(name)
        ? item(one, (why, ...path) => fail(why, name, ...path))
        : fail('is not a variable name', name),
    ]);
    // Members are defined, not assigned, so that a name `__proto__` stays data.
    return Object.fromEntries(entries) as Readonly<Record<string, T>>;
  };
}

/** An object with these members and no others. */
export function exactly<const Shapes extends Readonly<Record<string, Shape<unknown>>>>(
  shapes: Shapes,
): Shape<MembersOf<Shapes>> {
  const read = members(shapes);
  return (value, fail) => {
    const unknown = Object.keys(isRecord(value) ? value : {}).find((name) => !Object.hasOwn(shapes, name));
    return unknown === undefined ? read(value, fail) : fail(`has an unknown key: "${unknown}"`);
  };
}

/** An object with these members; others are left out. */
export function members<const Shapes extends Readonly<Record<string, Shape<unknown>>>>(
  shapes: Shapes,
): Shape<MembersOf<Shapes>> {
  const rows = Object.entries(shapes);
  return (value, fail) => {
    if (!isRecord(value)) return must(value, 'an object', fail);
    const read: Record<string, unknown> = {};
    let at = '';
    // One for all: hundreds of files are read for a list, and each has dozens of members.
    const failHere: typeof fail = (why, ...path) => fail(why, at, ...path);
    for (const [name, shape] of rows) {
      at = name;
      const one = shape(Object.hasOwn(value, name) ? value[name] : undefined, failHere);
      if (one !== undefined) read[name] = one;
    }
    return read as MembersOf<Shapes>;
  };
}

/** What a shape reads of a value; undefined where the value is not of that shape. */
export function readAs<T>(shape: Shape<T>, value: unknown): T | undefined {
  try {
    return shape(value, misfit);
  } catch (error) {
    if (error === MISFIT) return undefined;
    throw error;
  }
}

const MISFIT = new SkepError('internal/bug', { message: 'a value is not of the shape that was asked for' });
const misfit: Fail = () => {
  throw MISFIT;
};

/** Whatever it is. */
export const anything: Shape<unknown> = (value) => value;

/** The member may be absent. */
export function optional<T>(shape: Shape<T>): Shape<T | undefined> {
  return (value, fail) => (value === undefined ? undefined : shape(value, fail));
}

/** What an absent member means. */
export function withDefault<T>(shape: Shape<T>, absent: T): Shape<T> {
  return (value, fail) => (value === undefined ? absent : shape(value, fail));
}

/** As `withDefault`, for lists and mappings, which other tools write as null when they are empty. */
export function orEmpty<T>(shape: Shape<T>, empty: T): Shape<T> {
  return (value, fail) => (value === undefined || value === null ? empty : shape(value, fail));
}

/** As `optional`; null counts as absent, and stays. */
export function nullish<T>(shape: Shape<T>): Shape<T | null | undefined> {
  return (value, fail) => (value === undefined || value === null ? value : shape(value, fail));
}

/** An object with these members, as it is: others stay beside them. */
export function holding<const Shapes extends Readonly<Record<string, Shape<unknown>>>>(
  shapes: Shapes,
): Shape<MembersOf<Shapes>> {
  const read = members(shapes);
  return (value, fail) => {
    read(value, fail);
    return value as MembersOf<Shapes>;
  };
}
