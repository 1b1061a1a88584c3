import { rankServers } from '@skep/core/catalog/rank.ts';
import { redactUrl } from '@skep/core/log/redact.ts';
import { flag, settingsOf } from '@skep/core/settings/define-settings.ts';
import { printable } from '@skep/core/terminal/printable.ts';
import type { CatalogSource } from '../catalog/catalog-source.ts';
import { catalogOf } from '../catalog/open-catalog.ts';
import { outlookOf } from '../catalog/outlook.ts';
import { toHitItem, toHitTable } from '../catalog/rows.ts';
import { abilitiesHere } from '../cli/abilities.ts';
import { commonSettings, defineCommand, formatSettings } from '../cli/command.ts';
import { toJsonText } from '../workloads/to-json.ts';

export const search = defineCommand({
  usage: 'skep search [flags] QUERY...',
  summary: 'Find servers in the catalogue by name, title, tag or description, best first',
  description: [
    'Small typos are forgiven. RUNS HERE says whether this machine has what a server runs on, as far as that can be told without asking a container engine; NEEDS, what has to be given before it starts.',
  ],
  examples: [
    { command: 'skep search github', what: 'Servers for GitHub' },
    { command: 'skep search google drive --runnable', what: 'Only what runs here, or may' },
    { command: 'skep search com.example/', what: 'What one publisher offers' },
  ],
  positionals: [{ name: 'QUERY', required: true, variadic: true }],
  settings: [
    ...settingsOf({ group: 'Selection' }, [
      flag('bool', 'runnable', 'Leave out what is known not to run here', { default: false }),
    ]),
    ...formatSettings,
    ...commonSettings,
  ],
  async run({ values, positionals }, context) {
    const query = positionals.join(' ');
    const { signal, terminal } = context;
    const catalog = await catalogOf(context);
    const [entries, abilities] = await Promise.all([
      catalog.list({ search: query, signal }),
      abilitiesHere(context),
    ]);
    const found = rankServers(entries, query).map((entry) => ({
      entry,
      outlook: outlookOf(entry.document, abilities),
    }));
    const hits = values.runnable ? found.filter(({ outlook }) => outlook.here !== 'no') : found;
    if (values.format === 'json') return terminal.out(toJsonText(hits.map(toHitItem)));
    const asked = printable(query);
    if (hits.length > 0) {
      const servers = hits.length === 1 ? 'server' : 'servers';
      return terminal.out(
        `Found ${hits.length} ${servers} matching query: ${asked}\n${toHitTable(hits, terminal)}`,
      );
    }
    terminal.out(`No servers found matching query: ${asked}\n`);
    terminal.err(`${found.length > 0 ? hiddenText(found.length) : elsewhereText(catalog, entries.length)}\n`);
  },
});

function hiddenText(count: number): string {
  const servers = count === 1 ? '1 server matches, but does' : `${count} servers match, but do`;
  return `${servers} not run here; see without --runnable why`;
}

/** How to go on where nothing was found. */
function elsewhereText({ kind, location }: CatalogSource, count: number): string {
  if (kind === 'built-in')
    return `The built-in catalogue has ${count} servers; skep config set-registry ADDRESS chooses a larger one`;
  return `Looked in ${redactUrl(location)}; try fewer or other words, or another catalogue with skep config set-registry ADDRESS`;
}
