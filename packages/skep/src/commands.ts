import type { Command } from './cli/command.ts';
import type { Context } from './cli/context.ts';

/** What completion offers for a command's arguments. */
export type ArgumentKind = 'workload' | 'server' | 'shell';

export interface CommandRow {
  readonly name: string;
  readonly aliases?: readonly string[];
  /** Heading in `skep --help`; absent for commands that are not shown there. */
  readonly group?: string;
  /** One line, no full stop. */
  readonly brief: string;
  readonly argument?: ArgumentKind;
  readonly load: () => Promise<Command>;
  /** Tried first: undefined when it has done what the command is for, else the context to do it in. Loads little. */
  readonly shortcut?: () => Promise<
    (argv: readonly string[], context: Context) => Promise<Context | undefined>
  >;
}

export interface CommandFamily {
  readonly name: string;
  readonly group: string;
  readonly brief: string;
  readonly members: readonly CommandRow[];
}

const run = 'Run servers';
const look = 'Look at them';
const catalogue = 'Find servers';
const skep = 'Skep itself';

/** Every command. Implementations are loaded when they are run, so that none pays for another. */
export const COMMANDS: readonly (CommandRow | CommandFamily)[] = [
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
    name: 'rm',
    group: run,
    brief: 'Remove servers and everything made for them',
    argument: 'workload',
    load: async () => (await import('./commands/rm.ts')).rm,
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
    name: 'search',
    group: catalogue,
    brief: 'Find servers in the catalogue',
    load: async () => (await import('./commands/search.ts')).search,
  },
  {
    name: 'registry',
    group: catalogue,
    brief: 'Look into the catalogue',
    members: [
      {
        name: 'list',
        brief: 'List all servers of the catalogue',
        load: async () => (await import('./commands/registry-list.ts')).registryList,
      },
      {
        name: 'info',
        brief: 'Show one server of the catalogue',
        argument: 'server',
        load: async () => (await import('./commands/registry-info.ts')).registryInfo,
      },
    ],
  },
  {
    name: 'config',
    group: skep,
    brief: 'Choose where servers are looked up',
    members: [
      {
        name: 'set-registry',
        brief: 'Use another catalogue: a registry address, or a file',
        load: async () => (await import('./commands/config-registry.ts')).setRegistry,
      },
      {
        name: 'get-registry',
        brief: 'Show which catalogue is used',
        load: async () => (await import('./commands/config-registry.ts')).getRegistry,
      },
      {
        name: 'unset-registry',
        brief: 'Go back to the built-in catalogue',
        load: async () => (await import('./commands/config-registry.ts')).unsetRegistry,
      },
    ],
  },
  {
    name: 'completion',
    group: skep,
    brief: 'Print the completion script for a shell',
    argument: 'shell',
    load: async () => (await import('./commands/completion.ts')).completion,
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
    load: async () => (await import('./commands/completion.ts')).complete,
  },
];
