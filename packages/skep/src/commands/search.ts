import { commonSettings, defineCommand, formatSettings } from '../cli/command.ts';
import { catalogOf } from '../catalog/open-catalog.ts';
import { toCatalogItem, toCatalogTable } from '../catalog/rows.ts';
import { toJsonText } from '../workloads/to-json.ts';

export const search = defineCommand({
  usage: 'skep search [flags] QUERY',
  summary: 'Find servers in the catalogue by name, description or tag',
  positionals: [{ name: 'QUERY', required: true }],
  settings: [...formatSettings, ...commonSettings],
  async run({ values, positionals: [query = ''] }, context) {
    const catalog = await catalogOf(context);
    const found = await catalog.list({ search: query, signal: context.signal });
    const { terminal } = context;
    if (values.format === 'json') return terminal.out(toJsonText(found.map(toCatalogItem)));
    if (found.length === 0) return terminal.out(`No servers found matching query: ${query}\n`);
    terminal.out(
      `Found ${found.length} server${found.length === 1 ? '' : 's'} matching query: ${query}\n${toCatalogTable(found, terminal.width)}`,
    );
  },
});
