import { SkepError } from '../errors/skep-error.ts';
import type { Field, FieldKind, FieldValue, Settings } from './field.ts';

/** The type a field's value has in the program. */
export type ValueOf<F extends Field> = F['kind'] extends 'int' | 'float' | 'duration'
  ? number
  : F['kind'] extends 'bool'
    ? boolean
    : F['kind'] extends 'strings' | 'list'
      ? readonly string[]
      : F['kind'] extends 'pairs'
        ? Readonly<Record<string, string>>
        : F['kind'] extends 'json'
          ? unknown
          : F extends { readonly choices: readonly (infer Choice)[] }
            ? Choice
            : string;

/** Values by field name; one without a default may be undefined unless it is required. */
export type Values<Rows extends readonly Field[]> = {
  readonly [F in Rows[number] as F['name']]: F extends
    | { readonly default: FieldValue }
    | { readonly required: true }
    ? ValueOf<F>
    : ValueOf<F> | undefined;
};

/**
 * Keeps the literal types of the rows, so that `valuesOf` can infer names and value types. Fails with `internal/bug`
 * when two rows claim one name, flag, short flag, variable or key, or a relation names no row.
 */
export function defineSettings<const Rows extends readonly Field[]>(rows: Rows): Rows {
  for (const member of ['name', 'flag', 'short', 'env', 'key'] as const) {
    const claims = new Set<string>();
    for (const { [member]: claim } of rows) {
      if (claim === undefined) continue;
      if (claims.has(claim)) {
        throw new SkepError('internal/bug', { message: `two settings claim the ${member} "${claim}"` });
      }
      claims.add(claim);
    }
  }
  const names = new Set(rows.map((row) => row.name));
  for (const row of rows) {
    const isMissing = (name: string): boolean => !names.has(name);
    const missing = row.needs?.find(isMissing) ?? row.excludes?.find(isMissing);
    if (missing !== undefined) {
      throw new SkepError('internal/bug', {
        message: `setting "${row.name}" names "${missing}", which is none`,
      });
    }
  }
  return rows;
}

/** A row as it is written down: its group is given once, and the flag names it. */
type DeclaredRow = Omit<Field, 'name' | 'group'> & { readonly name?: string };

type CamelCase<Flag extends string> = Flag extends `${infer First}-${infer Rest}`
  ? `${First}${Capitalize<CamelCase<Rest>>}`
  : Flag;

type NameOf<Row extends DeclaredRow> = Row extends { readonly name: infer Name extends string }
  ? Name
  : Row extends { readonly flag: infer Flag extends string }
    ? CamelCase<Flag>
    : never;

/**
 * A row with a flag: the kind of its value, the flag without dashes, its line of help, and further facts.
 * `NoInfer`, because the facts are what is given, whatever is expected where the row stands.
 */
export function flag<
  const Kind extends FieldKind,
  const Flag extends string,
  const Facts extends Omit<DeclaredRow, 'kind' | 'flag' | 'brief'> = object,
>(
  kind: Kind,
  name: Flag,
  brief: string,
  facts?: Facts,
): NoInfer<Facts> & Readonly<{ kind: Kind; flag: Flag; brief: string }> {
  return { kind, flag: name, brief, ...(facts as Facts) };
}

/** The rows of one group; what a row says itself counts. One without a name has that of its flag, in camelCase. */
export function settingsOf<
  const Shared extends Pick<Field, 'group' | 'lenient' | 'notYet'>,
  const Rows extends readonly DeclaredRow[],
>(
  shared: Shared,
  rows: Rows,
): {
  readonly [I in keyof Rows]: Rows[I] & Omit<Shared, keyof Rows[I]> & { readonly name: NameOf<Rows[I]> };
} {
  const named = rows.map((row) => ({
    ...shared,
    ...row,
    name: row.name ?? row.flag?.replaceAll(/-(\w)/g, (_dash, letter: string) => letter.toUpperCase()) ?? '',
  }));
  return named as unknown as ReturnType<typeof settingsOf<Shared, Rows>>;
}

/** Plain values, typed by the rows. The readers have checked every value against its row. */
export function valuesOf<const Rows extends readonly Field[]>(rows: Rows, settings: Settings): Values<Rows> {
  const entries = rows.map((row) => [row.name, settings.get(row.name)?.value ?? row.default]);
  return Object.fromEntries(entries) as Values<Rows>;
}
