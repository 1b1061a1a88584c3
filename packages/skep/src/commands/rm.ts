import { SkepError } from '@skep/core/errors/skep-error.ts';
import { flag, settingsOf } from '@skep/core/settings/define-settings.ts';
import { commonSettings, defineCommand } from '../cli/command.ts';
import { SupervisorClient } from '../supervisor/client.ts';
import { savedNames } from '../run-config/file.ts';
import { checkWorkloadName } from '../settings/workload-name.ts';
import { knownNames } from '../workloads/name-lock.ts';
import { removeLeftovers } from './remove-leftovers.ts';
import {
  checkSelection,
  eachOf,
  onlyWaiting,
  selectedNames,
  selectionSettings,
} from '../workloads/select.ts';

export const rm = defineCommand({
  usage: 'skep rm [flags] [NAME...]',
  summary: 'Remove servers and everything made for them',
  description: [
    'Containers, images built by Skep, fetched packages, logs and saved settings go, with everything that the servers wrote for themselves. Removing what is not there is no error. On a terminal, --all, --group and --label ask first.',
  ],
  positionals: [{ name: 'NAME', variadic: true }],
  settings: [
    ...selectionSettings,
    ...settingsOf({ group: 'Selection' }, [
      flag('bool', 'yes', 'Remove all without a question', { short: 'y', default: false }),
    ]),
    ...commonSettings,
  ],
  async run({ values, positionals }, context) {
    const { places, signal, terminal, confirm } = context;
    const selection = await checkSelection(positionals, values, { command: 'rm', places });
    const { all, where } = selection;
    const names = selection.names.map(checkWorkloadName);
    const known = await knownNames(places);
    const chosen = all ? known : await selectedNames({ ...selection, names }, context);
    if (names.length === 0 && chosen.length > 0 && !values.yes && confirm) {
      const agreed = await confirm(`Remove ${chosen.join(', ')}, with everything that they wrote?`);
      if (!agreed) throw new SkepError('run/cancelled', { hint: 'nothing was removed' });
    }
    for (const name of chosen) {
      if (!known.includes(name)) terminal.err(`Warning: workload "${name}" not found\n`);
    }
    // What is not there needs no supervisor; what another command just makes is saved, but not known yet.
    const saved = new Set([...known, ...(await savedNames(places))]);
    const there = chosen.filter((name) => saved.has(name));
    const client = new SupervisorClient(context);
    const remove = async (name: string): Promise<void> => {
      await client.remove(name, { signal });
      terminal.out(`${name}\n`);
    };
    await onlyWaiting(eachOf(there, remove));
    if (chosen.length === 0 && !all) terminal.out(`No workloads found${where}\n`);
    if (!all) return;
    if (chosen.length === 0) terminal.out('No running workloads to delete\n');
    await removeLeftovers(context);
  },
});
