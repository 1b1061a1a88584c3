import { SkepError } from '@skep/core/errors/skep-error.ts';
import { flag, settingsOf } from '@skep/core/settings/define-settings.ts';
import { printable } from '@skep/core/terminal/printable.ts';
import { commonSettings, defineCommand, formatSettings } from '../cli/command.ts';
import type { Context } from '../cli/context.ts';
import { toTable } from '../print/table.ts';
import { createGroup, groupNames, readGroup, removeGroup } from '../run-config/group-file.ts';
import { tellStays } from '../run/tell-start.ts';
import { DEFAULT_GROUP } from '../settings/group-name.ts';
import { SupervisorClient } from '../supervisor/client.ts';
import { groupsOfAll, membersOf, moveToGroup } from '../workloads/group-members.ts';
import { eachOf } from '../workloads/select.ts';
import { toJsonText } from '../workloads/to-json.ts';

export const groupCreate = defineCommand({
  usage: 'skep group create NAME',
  summary: 'Make a group, which servers can then be run in',
  examples: [
    { command: 'skep group create team', what: 'A group' },
    { command: 'skep run everything --group team', what: 'A server in it' },
  ],
  positionals: [{ name: 'NAME', required: true }],
  settings: [...commonSettings],
  async run({ positionals: [name = ''] }, { places, terminal }) {
    await createGroup(places, name);
    terminal.out(`${name}\n`);
  },
});

export const groupList = defineCommand({
  usage: 'skep group list [flags]',
  summary: 'List the groups, with how many servers are in each',
  settings: [...formatSettings, ...commonSettings],
  async run({ values }, { places, terminal }) {
    const all = await groupsOfAll(places);
    const groups = [];
    for (const name of await groupNames(places)) {
      const workloads = all.flatMap(([workload, group]) => (group === name ? [workload] : []));
      groups.push({ name, workloads, registered_clients: await clientsOf(name, { places, terminal }) });
    }
    if (values.format === 'json') return terminal.out(toJsonText(groups));
    const rows = groups.map(({ name, workloads, registered_clients: clients }) => [
      name,
      `${workloads.length}`,
      clients?.join(', ') ?? 'unknown',
    ]);
    terminal.out(toTable([{ title: 'NAME', whole: true }, 'SERVERS', 'CLIENTS'], rows, terminal));
  },
});

/** Null where the file is damaged, which is told; the others are shown. */
async function clientsOf(
  name: string,
  { places, terminal }: Pick<Context, 'places' | 'terminal'>,
): Promise<readonly string[] | null> {
  try {
    return (await readGroup(places, name)).registered_clients;
  } catch (error) {
    if (!(error instanceof SkepError)) throw error;
    terminal.err(`Warning: ${printable(error.message)}\n`);
    return null;
  }
}

export const groupRm = defineCommand({
  usage: 'skep group rm [flags] NAME',
  summary: 'Remove a group; its servers move to the group default, or go too',
  description: [
    'On a terminal it asks first when there are servers in the group. Data that servers kept stays, and is named.',
  ],
  positionals: [{ name: 'NAME', required: true }],
  settings: [
    ...settingsOf({ group: 'Removing' }, [
      flag('bool', 'with-workloads', 'Remove the servers of the group; their data stays', {
        default: false,
      }),
      flag('bool', 'yes', 'Remove without a question', { short: 'y', default: false }),
    ]),
    ...commonSettings,
  ],
  async run({ values, positionals: [name = ''] }, context) {
    const { places, terminal, confirm } = context;
    if (name === DEFAULT_GROUP) {
      throw new SkepError('usage/invalid-value', {
        message: `the group '${DEFAULT_GROUP}' cannot be removed`,
        hint: 'servers that were given no group are in it',
      });
    }
    const { registered_clients: clients } = await readGroup(places, name);
    const shown = await membersOf(places, name);
    if (shown.length > 0) {
      const fate = values.withWorkloads ? 'are removed; their data stays' : 'move to default';
      terminal.err(`WARNING: these servers of the group '${name}' ${fate}: ${shown.join(', ')}\n`);
      if (confirm && !values.yes && !(await confirm(`Remove the group '${name}'?`)))
        return terminal.out('Group deletion cancelled.\n');
    }
    const doomed = values.withWorkloads ? shown : [];
    await removeGroup(places, name, () => emptyGroup(name, { doomed, clients }, context));
    terminal.out(`${name}\n`);
  },
});

/** Removes what the person agreed to; what has joined the group since moves. */
async function emptyGroup(
  group: string,
  { doomed, clients }: { readonly doomed: readonly string[]; readonly clients: readonly string[] },
  context: Context,
): Promise<void> {
  const { places, signal, terminal } = context;
  const client = new SupervisorClient(context);
  const members = await membersOf(places, group);
  const moved = members.filter((name) => !doomed.includes(name));
  await eachOf(members, async (name) => {
    if (moved.includes(name)) await moveToGroup(name, DEFAULT_GROUP, { places, signal });
    else tellStays(name, await client.remove(name, { signal }), terminal);
  });
  const { tellMoved } = await import('../workloads/tell-moved.ts');
  if (moved.length > 0) await tellMoved(moved, clients, context);
}
