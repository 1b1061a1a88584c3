import { escapeCell, markdownTable } from './to-markdown.ts';
import { configShape } from '../../packages/registry/src/config/shape.ts';
import { keptUntilRestart } from '../../packages/registry/src/shape/restart.ts';
import type { Page } from './page.ts';

/** The part of JSON Schema that the configuration's shape uses. */
interface Schema {
  readonly type?: string;
  readonly description?: string;
  readonly default?: unknown;
  readonly enum?: readonly string[];
  readonly pattern?: string;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly items?: Schema;
  readonly additionalProperties?: boolean | Schema;
  readonly anyOf?: readonly Schema[];
}

export const registryConfigPage: Page = {
  file: 'registry-config.md',
  title: 'Configuration of `skep-registry`',
  brief: 'Every key of the configuration file.',
  render: () =>
    `YAML, or JSON; keys keep their case, unknown ones are errors. *Not available yet* means: arrives with a coming
release, and \`serve\` refuses a file that uses it until then.

A variable of the environment sets every key that holds one value and is in no list: \`SKEP_REGISTRY_\` and the path in
capitals, \`auth.mode\` is \`SKEP_REGISTRY_AUTH_MODE\`. It counts before the file, and a flag counts before it.

\`SIGHUP\` makes a running server read the file again. What it cannot take over stays as it was, with a warning that says to
restart: ${keptUntilRestart(configShape)
      .map((path) => `\`${path.join('.')}\``)
      .join(', ')}.

${markdownTable(['Key', 'Type', 'Required', 'Default', 'Meaning'], keyRows(configShape.toJSONSchema({ unrepresentable: 'any', io: 'input' }) as Schema, ''))}`,
};

function keyRows(schema: Schema, prefix: string): string[][] {
  return Object.entries(schema.properties ?? {}).flatMap(([name, member]) => {
    const key = prefix + name;
    const required = schema.required?.includes(name) === true ? 'yes' : '';
    const inside = orEmpty(member.items ?? member);
    const path = member.items === undefined ? `${key}.` : `${key}[].`;
    return [
      [`\`${key}\``, typeOf(member), required, defaultOf(member), escapeCell(member.description ?? '')],
      ...keyRows(inside, path),
    ];
  });
}

function defaultOf({ default: value }: Schema): string {
  if (value === undefined || value === '') return '';
  if (typeof value !== 'object' || value === null) return `\`${JSON.stringify(value).replaceAll('"', '')}\``;
  return Object.entries(value)
    .map(([key, member]) => `\`${key}: ${member}\``)
    .join(', ');
}

/** Of a member that may also be empty, what else it may be. */
function orEmpty(schema: Schema): Schema {
  return schema.anyOf?.find(({ type }) => type !== 'null') ?? schema;
}

function typeOf(given: Schema): string {
  const schema = orEmpty(given);
  if (Object.keys(schema).length === 0) return '*not available yet*';
  if (schema.enum !== undefined) {
    return schema.enum
      .filter((choice) => choice !== '')
      .map((choice) => `\`${choice}\``)
      .join(', ');
  }
  if (schema.items !== undefined) return `list of ${schema.items.type ?? 'anything'}`;
  if (schema.pattern !== undefined) return `${schema.type ?? ''} \`${escapeCell(schema.pattern)}\``;
  return schema.type === 'object' ? 'mapping' : (schema.type ?? 'anything');
}
