import { SkepError } from '@skep/core/errors/skep-error.ts';
import { flag, settingsOf } from '@skep/core/settings/define-settings.ts';
import { commonSettings, defineCommand } from '../cli/command.ts';
import type { Context } from '../cli/context.ts';
import { ensureHosted } from '../cli/ensure-hosted.ts';
import { requireFrontDoor } from '../cli/front-door.ts';
import { loadAppConfig } from '../config/app-config.ts';
import { SupervisorClient } from '../supervisor/client.ts';
import type { ClientRecord } from '../clients/record.ts';
import type { Client } from '../clients/table.ts';
import { requireGroup } from '../run-config/group-file.ts';
import { DEFAULT_GROUP } from '../settings/group-name.ts';
import { checkWorkloadName } from '../settings/workload-name.ts';
import { changeClients } from './change-clients.ts';
import { clientNamed, installedClients, requireInstalled } from '../workloads/choose-clients.ts';
import { viewWorkload } from '../workloads/view.ts';

/** How a client is chosen, and what is asked before its file is written. */
export const clientSettings = [
  ...settingsOf({ group: 'Selection' }, [
    flag('bool', 'all', 'All clients that are installed', { short: 'a', default: false }),
    flag('strings', 'group', 'Servers of these groups', { short: 'g', placeholder: 'group' }),
  ]),
  ...settingsOf({ group: 'Writing' }, [
    flag('bool', 'yes', 'Write without a question', { short: 'y', default: false }),
    flag('bool', 'dry-run', 'Show the difference, and write nothing', { default: false }),
  ]),
];

interface Chosen {
  readonly clients: readonly Client[];
  readonly names: readonly string[];
}

interface ClientFlags {
  readonly all: boolean;
  readonly group: readonly string[] | undefined;
}

/** Which clients, and which workloads by name. Fails with `usage/*`, `client/*`, `group/not-found` or `run/invalid-name`. */
export async function chooseClients(
  positionals: readonly string[],
  { all, group = [] }: ClientFlags,
  context: Context,
): Promise<Chosen> {
  const [first, ...rest] = positionals;
  const names = (all ? positionals : rest).map(checkWorkloadName);
  if (!all && first === undefined) {
    throw new SkepError('usage/missing-argument', {
      message: 'missing argument CLIENT',
      hint: 'see the clients with skep client status, or give --all for those that are installed',
    });
  }
  if (names.length > 0 && group.length > 0) {
    throw new SkepError('usage/conflict', { message: 'cannot specify both a workload name and --group' });
  }
  for (const name of group) await requireGroup(context.places, name);
  const clients = all || first === undefined ? await installedClients(context) : [clientNamed(first)];
  return { clients, names: [...new Set(names)] };
}

export const connect = defineCommand({
  usage: 'skep connect [flags] CLIENT|--all [NAME...]',
  summary: 'Write servers into the configuration of MCP clients, and keep them there',
  description: [
    'Without names, the client gets every server of the group (default: default), now and whenever one starts; what stops is taken away. The difference is shown first, and on a terminal asked about; where nobody can be asked, it is shown and written. What Skep did not write stays as it is.',
  ],
  examples: [
    { command: 'skep connect claude-code', what: 'All servers of the group default' },
    { command: 'skep connect vscode memory time', what: 'Only these two' },
    { command: 'skep connect --all --dry-run', what: 'What would change, for every installed client' },
  ],
  positionals: [{ name: 'CLIENT' }, { name: 'NAME', variadic: true }],
  settings: [
    ...clientSettings,
    ...settingsOf({ group: 'Writing' }, [
      flag('bool', 'stdio', 'Write the command skep proxy stdio NAME instead of a URL', {
        defaultText: 'as the client was connected before',
      }),
    ]),
    ...commonSettings,
  ],
  async run({ values, positionals }, context) {
    const { clients, names } = await chooseClients(positionals, values, context);
    await ensureHosted(context);
    const groups = names.length > 0 ? [] : (values.group ?? [DEFAULT_GROUP]);
    const waiting: string[] = [];
    for (const name of names) {
      if ((await viewWorkload(name, context)).status !== 'running') waiting.push(name);
    }
    if (values.stdio !== true) await lastingAddresses(context);
    if (!values.all) for (const client of clients) await requireInstalled(client, context);
    const changes = clients.map((client) => ({
      client,
      register: groups,
      remember: ({ workloads, stdio, ...record }: ClientRecord) => ({
        ...record,
        stdio: values.stdio ?? stdio,
        workloads: [...new Set([...workloads, ...names])],
      }),
    }));
    await changeClients(changes, values, context);
    for (const name of waiting)
      context.terminal.err(`  "${name}" does not run; it is written when it starts\n`);
  },
});

/** URLs are written down, so they have to last. Without a front door by the person's will, those of the workloads do. */
async function lastingAddresses(context: Context): Promise<void> {
  const { frontPort } = await loadAppConfig(context.places, context.env);
  if (frontPort === 0) return;
  const client = new SupervisorClient(context);
  await requireFrontDoor({ ...context, wake: () => client.settle({ signal: context.signal }) });
}
