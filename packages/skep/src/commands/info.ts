import { printableJson } from '@skep/core/terminal/printable.ts';
import { chooseServer } from '../catalog/choose-server.ts';
import { catalogOf } from '../catalog/open-catalog.ts';
import { serverFacts } from '../catalog/server-facts.ts';
import { abilitiesHere } from '../cli/abilities.ts';
import { commonSettings, defineCommand, formatSettings } from '../cli/command.ts';
import { toFacts } from '../print/table.ts';

export const info = infoCommand('skep info');
/** The same under the name that it had first. */
export const registryInfo = infoCommand('skep registry info');

function infoCommand(called: string) {
  return defineCommand({
    usage: `${called} [flags] NAME`,
    summary: 'Show one server of the catalogue: what it runs from, needs and offers, and how to run it',
    examples: [{ command: `${called} filesystem`, what: 'By its short name, where only one has it' }],
    positionals: [{ name: 'NAME', required: true }],
    settings: [...formatSettings, ...commonSettings],
    async run({ values, positionals: [name = ''] }, context) {
      const { terminal } = context;
      const { entry, callable } = await chooseServer(await catalogOf(context), name, context);
      // The publisher's own text: nothing is lost or reordered on the way.
      if (values.format === 'json') return terminal.out(`${printableJson(entry.json)}\n`);
      terminal.out(toFacts(serverFacts(entry, await abilitiesHere(context), callable), terminal));
    },
  });
}
