import { commonSettings, defineCommand } from '../cli/command.ts';
import { SupervisorClient } from '../supervisor/client.ts';
import { savedNames } from '../run-config/file.ts';
import { checkWorkloadName } from '../settings/workload-name.ts';
import { knownNames } from '../workloads/name-lock.ts';
import { removeLeftovers } from './remove-leftovers.ts';
import { checkSelection, selectionSettings, eachOf, onlyWaiting } from '../workloads/select.ts';

export const rm = defineCommand({
  usage: 'skep rm [flags] [NAME...]',
  summary: 'Remove servers and everything made for them',
  description: [
    'Containers, images built by Skep, fetched packages, logs and saved settings go, with everything that the servers wrote for themselves. Removing what is not there is no error.',
  ],
  positionals: [{ name: 'NAME', variadic: true }],
  settings: [...selectionSettings, ...commonSettings],
  async run({ values, positionals }, context) {
    const { names, all } = checkSelection(positionals, values, 'rm');
    const { places, signal, terminal } = context;
    const known = await knownNames(places);
    const chosen = names.length > 0 ? names.map(checkWorkloadName) : known;
    for (const name of chosen) {
      if (!known.includes(name)) terminal.err(`Warning: workload "${name}" not found\n`);
    }
    // What is not there needs no supervisor; what another command just makes is saved, but not known yet.
    const saved = new Set([...known, ...(await savedNames(places))]);
    const there = chosen.filter((name) => saved.has(name));
    const client = new SupervisorClient(context);
    await onlyWaiting(eachOf(there, (name) => client.remove(name, { signal })));
    if (!all) return;
    if (chosen.length === 0) terminal.out('No running workloads to delete\n');
    await removeLeftovers(context);
  },
});
