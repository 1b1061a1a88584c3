import { escapeCell, markdownTable } from '@skep/core/settings/to-markdown.ts';
import { configShape } from '../../packages/registry/src/config/shape.ts';
import type { Page } from './page.ts';

/** The part of JSON Schema that the configuration's shape uses. */
interface Schema {
  readonly type?: string;
  readonly description?: string;
  readonly enum?: readonly string[];
  readonly pattern?: string;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly items?: Schema;
  readonly additionalProperties?: boolean | Schema;
}

export const registryConfigPage: Page = {
  file: 'registry-config.md',
  title: 'Configuration of `skep-registry`',
  brief: 'Every key of the configuration file.',
  render: () =>
    `YAML, or JSON; keys keep their case, unknown ones are errors. *Not available yet* means: arrives with a coming
release, and a file that uses it is refused until then.

${markdownTable(['Key', 'Type', 'Required', 'Meaning'], keyRows(configShape.toJSONSchema({ unrepresentable: 'any', io: 'input' }) as Schema, ''))}`,
};

function keyRows(schema: Schema, prefix: string): string[][] {
  return Object.entries(schema.properties ?? {}).flatMap(([name, member]) => {
    const key = prefix + name;
    const required = schema.required?.includes(name) === true ? 'yes' : '';
    const inside = member.items ?? member;
    const path = member.items === undefined ? `${key}.` : `${key}[].`;
    return [
      [`\`${key}\``, typeOf(member), required, escapeCell(member.description ?? '')],
      ...keyRows(inside, path),
    ];
  });
}

function typeOf(schema: Schema): string {
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
