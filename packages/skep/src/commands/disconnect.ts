import { SkepError } from '@skep/core/errors/skep-error.ts';
import { groupsOfClients } from '../supervisor/registered-clients.ts';
import { commonSettings, defineCommand } from '../cli/command.ts';
import type { Context } from '../cli/context.ts';
import type { ClientRecord } from '../clients/record.ts';
import type { Client } from '../clients/table.ts';
import { findRunConfig } from '../run-config/file.ts';
import { changeClients } from './change-clients.ts';
import { chooseClients, clientSettings } from './connect.ts';

export const disconnect = defineCommand({
  usage: 'skep disconnect [flags] CLIENT|--all [NAME...]',
  summary: 'Take servers out of the configuration of MCP clients',
  description: [
    'Without names and --group, everything that Skep wrote for the client goes, and nothing comes any more.',
  ],
  examples: [
    { command: 'skep disconnect cursor', what: 'Leave the file as if Skep had never been there' },
    { command: 'skep disconnect vscode memory', what: 'One that was connected by its name' },
  ],
  positionals: [{ name: 'CLIENT' }, { name: 'NAME', variadic: true }],
  settings: [...clientSettings, ...commonSettings],
  async run({ values, positionals }, context) {
    const { clients, names } = await chooseClients(positionals, values, context);
    for (const client of clients) for (const name of names) await checkByName(client, name, context);
    const isAll = names.length === 0 && values.group === undefined;
    const changes = clients.map((client) => ({
      client,
      unregister: isAll ? ('all' as const) : (values.group ?? []),
      remember: (record: ClientRecord) => ({
        ...record,
        stdio: isAll ? false : record.stdio,
        workloads: isAll ? [] : record.workloads.filter((name) => !names.includes(name)),
      }),
    }));
    await changeClients(changes, values, context);
  },
});

/** One that comes with its group would be back at its next start. */
async function checkByName(client: Client, name: string, { places }: Context): Promise<void> {
  const config = await findRunConfig(places, name);
  const groups = (await groupsOfClients(places)).get(client.name) ?? [];
  if (!config || !groups.includes(config.group)) return;
  throw new SkepError('usage/conflict', {
    message: `${client.title} has "${name}" because it has the group '${config.group}'`,
    hint: `skep disconnect ${client.name} --group '${config.group}', then skep connect ${client.name} with the names that it is to keep`,
  });
}
