import type { Field, FieldKind } from '@skep/core/settings/field.ts';
import { availableChoices } from '@skep/core/settings/parse-value.ts';

export interface JsonSchema {
  readonly $schema?: string;
  readonly type?: string;
  readonly description?: string;
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly additionalProperties?: boolean | JsonSchema;
  readonly items?: JsonSchema;
  readonly enum?: readonly string[];
  readonly pattern?: string;
  readonly default?: unknown;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly writeOnly?: boolean;
}

const TEXTS: JsonSchema = { type: 'array', items: { type: 'string' } };

const SHAPE: Readonly<Record<FieldKind, JsonSchema>> = {
  string: { type: 'string' },
  path: { type: 'string' },
  'json-file': { type: 'string' },
  choice: { type: 'string' },
  int: { type: 'integer' },
  float: { type: 'number' },
  bool: { type: 'boolean' },
  duration: { type: 'string', pattern: '^[+-]?(?:0|(?:(?:\\d+\\.?\\d*|\\.\\d+)(?:ns|us|µs|μs|ms|s|m|h))+)$' },
  strings: TEXTS,
  list: TEXTS,
  pairs: { type: 'object', additionalProperties: { type: 'string' } },
  json: {},
};

/** JSON Schema (2020-12) of the file that `fromFile` reads: the rows with a key that this release takes. */
export function toJsonSchema(rows: readonly Field[]): JsonSchema {
  const stored = rows.filter((row) => row.key !== undefined && row.notYet !== true);
  return { $schema: 'https://json-schema.org/draft/2020-12/schema', ...mapping(stored, '') };
}

function mapping(rows: readonly Field[], prefix: string): JsonSchema {
  const names = new Set(rows.map((row) => (row.key ?? '').slice(prefix.length).split('.')[0] ?? ''));
  const properties = [...names].map((name): [string, JsonSchema] => {
    const path = prefix + name;
    const leaf = rows.find((row) => row.key === path);
    const below = rows.filter((row) => row.key?.startsWith(`${path}.`) === true);
    return [name, leaf === undefined ? mapping(below, `${path}.`) : property(leaf)];
  });
  return { type: 'object', properties: Object.fromEntries(properties), additionalProperties: false };
}

function property(row: Field): JsonSchema {
  // Its shape is code, which a schema cannot say.
  if (row.stored !== undefined) return { description: row.brief };
  const ranged = row.kind === 'int' || row.kind === 'float';
  return {
    ...SHAPE[row.kind],
    description: row.brief,
    ...(row.choices === undefined ? {} : { enum: availableChoices(row) }),
    // a duration's default is in milliseconds here but text in the file
    ...(row.default === undefined || row.kind === 'duration' ? {} : { default: row.default }),
    ...(ranged && row.min !== undefined ? { minimum: row.min } : {}),
    ...(ranged && row.max !== undefined ? { maximum: row.max } : {}),
    ...(row.secret === true ? { writeOnly: true } : {}),
  };
}
