import { SkepError } from '@skep/core/errors/skep-error.ts';
import { flag, settingsOf } from '@skep/core/settings/define-settings.ts';
import { commonSettings, defineCommand, formatSettings } from '../cli/command.ts';
import type { Context } from '../cli/context.ts';
import { readRecord } from '../clients/record.ts';
import { groupsOfClients } from '../supervisor/registered-clients.ts';
import { CLIENTS, fileOf, type Client } from '../clients/table.ts';
import { shortPath } from '../print/difference.ts';
import { toTable } from '../print/table.ts';
import { isInstalled } from '../workloads/choose-clients.ts';
import { toJsonText } from '../workloads/to-json.ts';
import { connect } from './connect.ts';
import { disconnect } from './disconnect.ts';

interface ClientState {
  readonly client: Client;
  readonly installed: boolean;
  readonly groups: readonly string[];
  /** By name. */
  readonly workloads: readonly string[];
  /** What its file has of Skep now. */
  readonly servers: readonly string[];
}

async function statesOf(context: Context): Promise<readonly ClientState[]> {
  const groups = await groupsOfClients(context.places);
  return Promise.all(
    CLIENTS.map(async (client) => {
      const { workloads, entries } = await readRecord(context.places, client.name);
      const installed = await isInstalled(client, context);
      const servers = entries.map(({ name }) => name);
      return { client, installed, groups: groups.get(client.name) ?? [], workloads, servers };
    }),
  );
}

const isConnected = ({ groups, workloads }: ClientState): boolean =>
  groups.length > 0 || workloads.length > 0;
const yesOrNo = (is: boolean): string => (is ? 'yes' : 'no');

export const clientStatus = defineCommand({
  usage: 'skep client status [flags]',
  summary: 'Show which MCP clients are installed and connected, and their files',
  settings: [...formatSettings, ...commonSettings],
  async run({ values }, context) {
    const states = await statesOf(context);
    if (values.format === 'json') {
      const items = states.map((state) => ({
        client_type: state.client.name,
        installed: state.installed,
        registered: isConnected(state),
        groups: state.groups,
        workloads: state.workloads,
        servers: state.servers,
        file: fileOf(state.client, context),
      }));
      return context.terminal.out(toJsonText(items));
    }
    const rows = states.map((state) => [
      state.client.name,
      yesOrNo(state.installed),
      yesOrNo(isConnected(state)),
      shortPath(fileOf(state.client, context), context),
    ]);
    const head = ['CLIENT', 'INSTALLED', 'CONNECTED', { title: 'FILE', keepsEnd: true } as const];
    context.terminal.out(toTable(head, rows, context.terminal));
  },
});

export const listRegistered = defineCommand({
  usage: 'skep client list-registered [flags]',
  summary: 'List the connected clients with their groups and servers',
  settings: [...formatSettings, ...commonSettings],
  async run({ values }, context) {
    const states = (await statesOf(context)).filter(isConnected);
    if (values.format === 'json') {
      const items = states.map(({ client, groups, workloads, servers }) => ({
        client_type: client.name,
        groups,
        workloads,
        servers,
      }));
      return context.terminal.out(toJsonText(items));
    }
    if (states.length === 0) return context.terminal.out('No clients are registered\n');
    const rows = states.map(({ client, groups, workloads, servers }) => [
      client.name,
      groups.join(', '),
      workloads.join(', '),
      servers.join(', '),
    ]);
    context.terminal.out(toTable(['CLIENT', 'GROUPS', 'BY NAME', 'SERVERS NOW'], rows, context.terminal));
  },
});

const groupSettings = settingsOf({ group: 'Selection' }, [
  flag('strings', 'group', 'Groups', { short: 'g', placeholder: 'group' }),
]);

/** The name that other tools know `connect` by. */
export const clientRegister = defineCommand({
  usage: 'skep client register [flags] CLIENT',
  summary: 'Connect a client to groups, without a question; see skep connect',
  positionals: [{ name: 'CLIENT', required: true }],
  settings: [...groupSettings, ...commonSettings],
  run: ({ values, positionals: [client = ''] }, context) =>
    connect.execute([client, '--yes', ...groupFlags(values.group)], context),
});

/** The name that other tools know `disconnect` by. */
export const clientRemove = defineCommand({
  usage: 'skep client remove [flags] CLIENT',
  summary: 'Disconnect a client from groups, or altogether, without a question; see skep disconnect',
  positionals: [{ name: 'CLIENT', required: true }],
  settings: [...groupSettings, ...commonSettings],
  run: ({ values, positionals: [client = ''] }, context) =>
    disconnect.execute([client, '--yes', ...groupFlags(values.group)], context),
});

const groupFlags = (groups: readonly string[] | undefined): readonly string[] =>
  groups === undefined ? [] : [`--group=${groups.join(',')}`];

export const clientSetup = defineCommand({
  usage: 'skep client setup',
  summary: 'Ask for each installed client whether to connect it',
  settings: [...commonSettings],
  async run(_input, context) {
    const { confirm, terminal } = context;
    if (!confirm) {
      throw new SkepError('usage/not-available', {
        message: 'there is no terminal to ask at',
        hint: 'use skep connect CLIENT, or skep connect --all',
      });
    }
    const states = (await statesOf(context)).filter((state) => state.installed && !isConnected(state));
    if (states.length === 0) return terminal.err('Every installed client is connected already\n');
    const chosen: Client[] = [];
    for (const { client } of states) {
      const path = shortPath(fileOf(client, context), context);
      if (await confirm(`Connect ${client.title} (${path})?`)) chosen.push(client);
    }
    for (const client of chosen) await connect.execute([client.name], context);
  },
});
