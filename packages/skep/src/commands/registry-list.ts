import { commonSettings, defineCommand, formatSettings } from '../cli/command.ts';
import { catalogOf } from '../catalog/open-catalog.ts';
import { toCatalogItem, toCatalogTable } from '../catalog/rows.ts';
import { toJsonText } from '../workloads/to-json.ts';

export const registryList = defineCommand({
  usage: 'skep registry list [flags]',
  summary: 'List all servers of the catalogue',
  settings: [...formatSettings, ...commonSettings],
  async run({ values }, context) {
    const catalog = await catalogOf(context);
    const entries = await catalog.list({ signal: context.signal });
    const { terminal } = context;
    if (values.format === 'json') terminal.out(toJsonText(entries.map(toCatalogItem)));
    else terminal.out(toCatalogTable(entries, terminal));
  },
});
