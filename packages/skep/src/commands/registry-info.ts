import { runPlans } from '@skep/core/catalog/run-plan.ts';
import { SkepError, hasCode } from '@skep/core/errors/skep-error.ts';
import { printableJson } from '@skep/core/terminal/printable.ts';
import type { ServerEntry } from '@skep/core/catalog/entry.ts';
import { commonSettings, defineCommand, formatSettings } from '../cli/command.ts';
import { catalogOf } from '../catalog/open-catalog.ts';
import { kindsOf } from '../catalog/rows.ts';
import { toFacts } from '../print/table.ts';

export const registryInfo = defineCommand({
  usage: 'skep registry info [flags] NAME',
  summary: 'Show one server of the catalogue',
  positionals: [{ name: 'NAME', required: true }],
  settings: [...formatSettings, ...commonSettings],
  async run({ values, positionals: [name = ''] }, context) {
    const catalog = await catalogOf(context);
    const entry = await catalog.find(name, context.signal);
    if (!entry)
      throw new SkepError('target/not-found', { message: `server "${name}" not found in the catalogue` });
    const { terminal } = context;
    // The publisher's own text: nothing is lost or reordered on the way.
    if (values.format === 'json') return terminal.out(`${printableJson(entry.json)}\n`);
    const { document } = entry;
    terminal.out(
      toFacts([
        ['Name', entry.name],
        ['Title', document.title ?? undefined],
        ['Version', entry.version],
        ['Description', document.description],
        ['Repository', document.repository?.url ?? undefined],
        ['Runs from', kindsOf(entry).join(', ')],
        ...variables(entry),
      ]),
    );
  },
});

function variables(entry: ServerEntry): readonly (readonly [string, string])[] {
  try {
    return (runPlans(entry.document)[0]?.env ?? []).map(({ name, required, secret, description }) => {
      const notes = [required ? 'required' : 'optional', ...(secret ? ['secret'] : [])].join(', ');
      return [`-e ${name}`, `${description ?? ''} (${notes})`.trim()] as const;
    });
  } catch (error) {
    if (!hasCode(error, 'catalog/unusable-server')) throw error;
    return [['Not runnable', error.message]];
  }
}
