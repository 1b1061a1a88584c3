import type { CommandEntry, Program } from '@skep/core/command/command.ts';
import { ACCOUNT_COMMANDS, REGISTRY_COMMANDS } from './registry-commands.ts';
import { commonSettings } from './cli/command.ts';
import type { Context } from './cli/context.ts';
import { AUTH_COMMANDS } from './auth-commands.ts';
import { CONFIG_COMMANDS } from './config-commands.ts';
import { SECRET_COMMANDS } from './secret-commands.ts';

const run = 'Run servers';
const look = 'Look at them';
const clients = 'Connect clients';
const catalogue = 'Find servers';
const skep = 'Skep itself';

/** Every command. Implementations are loaded when they are run, so that none pays for another. */
export const COMMANDS: readonly CommandEntry<Context>[] = [
  {
    name: 'run',
    group: run,
    brief: 'Run an MCP server and print the URL to connect to',
    argument: 'server',
    load: async () => (await import('./commands/run.ts')).run,
    shortcut: async () => (await import('./run/run-through-supervisor.ts')).runThroughSupervisor,
  },
  {
    name: 'stop',
    group: run,
    brief: 'Stop servers; they can be started again on the same URL',
    argument: 'workload',
    load: async () => (await import('./commands/stop.ts')).stop,
  },
  {
    name: 'start',
    aliases: ['restart'],
    group: run,
    brief: 'Start stopped servers again',
    argument: 'workload',
    load: async () => (await import('./commands/start.ts')).start,
  },
  {
    name: 'upgrade',
    group: run,
    brief: 'Replace servers by newer versions, on the same URL',
    argument: 'workload',
    load: async () => (await import('./commands/upgrade.ts')).upgrade,
  },
  {
    name: 'permit',
    group: run,
    brief: 'Let a server reach a host, or see a path of this machine',
    argument: 'one',
    load: async () => (await import('./commands/permit.ts')).permit,
  },
  {
    name: 'deny',
    group: run,
    brief: 'Take away what a server may reach or see',
    argument: 'right',
    load: async () => (await import('./commands/deny.ts')).deny,
  },
  {
    name: 'rm',
    group: run,
    brief: 'Remove servers and everything made for them',
    argument: 'workload',
    load: async () => (await import('./commands/rm.ts')).rm,
  },
  {
    name: 'build',
    group: run,
    brief: 'Build the image of a package without running it',
    load: async () => (await import('./commands/build.ts')).build,
  },
  {
    name: 'prune',
    group: run,
    brief: 'Remove built images and fetched packages that no server uses',
    load: async () => (await import('./commands/prune.ts')).prune,
  },
  {
    name: 'list',
    aliases: ['ls'],
    group: look,
    brief: 'List running servers',
    load: async () => (await import('./commands/list.ts')).list,
  },
  {
    name: 'status',
    group: look,
    brief: 'Show one server',
    argument: 'workload',
    load: async () => (await import('./commands/status.ts')).status,
  },
  {
    name: 'logs',
    group: look,
    brief: 'Show what a server wrote',
    argument: 'workload',
    load: async () => (await import('./commands/logs.ts')).logs,
  },
  {
    name: 'export',
    group: look,
    brief: 'Write the run configuration of a server to a file',
    argument: 'workload',
    load: async () => (await import('./commands/export.ts')).exportCommand,
  },
  {
    name: 'mcp',
    group: look,
    brief: 'Ask a running server as its clients do',
    members: [
      {
        name: 'list',
        aliases: ['ls'],
        brief: 'List its tools, resources or prompts',
        load: async () => (await import('./commands/mcp.ts')).mcpList,
      },
      {
        name: 'call',
        brief: 'Call one of its tools',
        argument: 'workload',
        load: async () => (await import('./commands/mcp.ts')).mcpCall,
      },
    ],
  },
  {
    name: 'inspector',
    group: look,
    brief: 'Open the official MCP Inspector on a server',
    argument: 'workload',
    load: async () => (await import('./commands/inspector.ts')).inspector,
  },
  {
    name: 'authz',
    group: look,
    brief: 'Look at who may use what',
    members: [
      {
        name: 'explain',
        brief: 'Say why a caller may or may not use something',
        argument: 'workload',
        load: async () => (await import('./commands/authz-explain.ts')).authzExplain,
      },
    ],
  },
  {
    name: 'connect',
    group: clients,
    brief: 'Write servers into the configuration of MCP clients',
    argument: 'connection',
    load: async () => (await import('./commands/connect.ts')).connect,
  },
  {
    name: 'disconnect',
    group: clients,
    brief: 'Take them out again',
    argument: 'connection',
    load: async () => (await import('./commands/disconnect.ts')).disconnect,
  },
  {
    name: 'client',
    group: clients,
    brief: 'Look at MCP clients',
    members: [
      {
        name: 'status',
        brief: 'Show which clients are installed and connected',
        load: async () => (await import('./commands/client.ts')).clientStatus,
      },
      {
        name: 'setup',
        brief: 'Ask for each installed client whether to connect it',
        load: async () => (await import('./commands/client.ts')).clientSetup,
      },
      {
        name: 'register',
        brief: 'Connect a client to groups',
        argument: 'client',
        load: async () => (await import('./commands/client.ts')).clientRegister,
      },
      {
        name: 'remove',
        brief: 'Disconnect a client',
        argument: 'client',
        load: async () => (await import('./commands/client.ts')).clientRemove,
      },
      {
        name: 'list-registered',
        brief: 'List connected clients',
        load: async () => (await import('./commands/client.ts')).listRegistered,
      },
    ],
  },
  {
    name: 'proxy',
    group: clients,
    brief: 'Reach a server in other ways than by its URL',
    members: [
      {
        name: 'stdio',
        brief: 'Speak with a server over standard input and output',
        argument: 'workload',
        load: async () => (await import('./commands/proxy-stdio.ts')).proxyStdio,
      },
    ],
  },
  {
    name: 'search',
    group: catalogue,
    brief: 'Find servers in the catalogue',
    load: async () => (await import('./commands/search.ts')).search,
  },
  {
    name: 'info',
    group: catalogue,
    brief: 'Show one server of the catalogue, and how to run it',
    argument: 'server',
    load: async () => (await import('./commands/info.ts')).info,
  },
  REGISTRY_COMMANDS,
  ...ACCOUNT_COMMANDS,
  CONFIG_COMMANDS,
  {
    name: 'group',
    group: run,
    brief: 'Keep servers in groups',
    members: [
      {
        name: 'create',
        brief: 'Make a group',
        load: async () => (await import('./commands/group.ts')).groupCreate,
      },
      {
        name: 'list',
        aliases: ['ls'],
        brief: 'List the groups',
        load: async () => (await import('./commands/group.ts')).groupList,
      },
      {
        name: 'rm',
        aliases: ['delete'],
        brief: 'Remove a group',
        argument: 'group',
        load: async () => (await import('./commands/group.ts')).groupRm,
      },
      {
        name: 'run',
        brief: 'Run all servers of a group of the catalogue',
        load: async () => (await import('./commands/group-run.ts')).groupRun,
      },
    ],
  },
  {
    name: 'autostart',
    group: skep,
    brief: 'Start servers again after a reboot',
    members: [
      {
        name: 'on',
        brief: 'Start servers again that ran when the machine went down',
        load: async () => (await import('./commands/autostart.ts')).autostartOn,
      },
      {
        name: 'off',
        brief: 'Start nothing after a reboot',
        load: async () => (await import('./commands/autostart.ts')).autostartOff,
      },
      {
        name: 'status',
        brief: 'Show whether servers start again',
        load: async () => (await import('./commands/autostart.ts')).autostartStatus,
      },
    ],
  },
  {
    name: 'doctor',
    group: skep,
    brief: 'Look for what keeps servers from running here',
    load: async () => (await import('./commands/doctor.ts')).doctor,
  },
  {
    name: 'runtime',
    group: skep,
    brief: 'Look at what servers run on',
    members: [
      {
        name: 'check',
        brief: 'Ask the runtime whether it answers',
        load: async () => (await import('./commands/runtime-check.ts')).runtimeCheck,
      },
    ],
  },
  AUTH_COMMANDS,
  SECRET_COMMANDS,
  {
    name: 'completion',
    group: skep,
    brief: 'Print the completion script for a shell',
    argument: 'shell',
    load: async (program) =>
      (await import('@skep/core/command/completion.ts')).completionCommand(program, commonSettings),
  },
  {
    name: 'version',
    group: skep,
    brief: 'Show the version',
    load: async () => (await import('./commands/version.ts')).version,
  },
  {
    name: 'supervise',
    brief: 'Host detached workloads; started by the other commands',
    load: async () => (await import('./commands/supervise.ts')).supervise,
  },
  {
    name: 'complete',
    brief: 'Answer a completion script',
    load: async (program) =>
      (await import('@skep/core/command/completion.ts')).completeCommand(program, commonSettings),
  },
];

/** What other tools call it. A command of that name takes the line away. */
const ELSEWHERE: ReadonlyMap<string, string> = new Map([
  ['ps', 'skep list'],
  ['top', 'skep list'],
  ['inspect', 'skep status NAME, or skep info SERVER for one of the catalogue'],
  ['show', 'skep status NAME, or skep info SERVER for one of the catalogue'],
  ['describe', 'skep status NAME, or skep info SERVER for one of the catalogue'],
  ['log', 'skep logs NAME'],
  ['remove', 'skep rm NAME'],
  ['delete', 'skep rm NAME'],
  ['del', 'skep rm NAME'],
  ['uninstall', 'skep rm NAME'],
  ['kill', 'skep stop NAME'],
  ['down', 'skep stop NAME'],
  ['up', 'skep run SERVER'],
  ['add', 'skep run SERVER'],
  ['create', 'skep run SERVER'],
  ['install', 'skep run SERVER'],
  ['pull', 'skep run SERVER, which fetches what it needs'],
  ['update', 'skep upgrade NAME'],
  ['setup', 'skep client setup'],
  ['register', 'skep client register CLIENT'],
  ['find', 'skep search QUERY'],
  ['allow', 'skep permit NAME HOST'],
  ['grant', 'skep permit NAME HOST'],
  ['revoke', 'skep deny NAME HOST'],
  ['signin', 'skep login ADDRESS'],
  ['validate', 'skep publish --dry-run'],
  ['init', 'skep publish --init'],
]);

export const SKEP: Program<Context> = {
  name: 'skep',
  about: [
    'Skep runs MCP servers, each in a container or sandbox, behind one local URL.',
    'Try\n  skep search files\n  skep run everything\n  skep list',
  ],
  closing: ['skep COMMAND --help says more about a command.'],
  commands: COMMANDS,
  prefix: 'skep ',
  debugVariable: 'SKEP_DEBUG',
  elsewhere: ELSEWHERE,
  repeated: ['workload', 'config', 'connection', 'right'],
  offers: {
    workload: async (context) => (await import('./commands/completion.ts')).offerWorkloads(context),
    one: async (context) => (await import('./commands/completion.ts')).offerWorkloads(context),
    right: async (context, given) => (await import('./commands/completion.ts')).offerRights(context, given),
    group: async (context) => (await import('./commands/completion.ts')).offerGroups(context),
    label: async (context) => (await import('./commands/completion.ts')).offerLabels(context),
    config: async (context, given) => (await import('./commands/completion.ts')).offerConfig(context, given),
    client: async () => (await import('./commands/completion.ts')).offerClients(),
    connection: async (context, given) =>
      (await import('./commands/completion.ts')).offerConnections(context, given),
    server: async (context) => (await import('./commands/completion.ts')).offerServers(context),
    secret: async (context) => (await import('./commands/completion.ts')).offerSecrets(context),
  },
};
