import type { CommandFamily, CommandRow } from '@skep/core/command/command.ts';
import type { Context } from './cli/context.ts';

const group = 'Sign in and publish';

/** What people do who are known at a registry. */
export const ACCOUNT_COMMANDS: readonly CommandRow<Context>[] = [
  {
    name: 'login',
    group,
    brief: 'Sign in to a registry',
    load: async () => (await import('./commands/login.ts')).login,
  },
  {
    name: 'logout',
    group,
    brief: 'Sign out of it',
    load: async () => (await import('./commands/logout.ts')).logout,
  },
  {
    name: 'whoami',
    group,
    brief: 'Show who you are there, and which registries there are',
    load: async () => (await import('./commands/whoami.ts')).whoami,
  },
  {
    name: 'publish',
    group,
    brief: 'Publish a server document to a registry',
    load: async () => (await import('./commands/publish.ts')).publish,
  },
  {
    name: 'unpublish',
    group,
    brief: 'Delete a version of a server from it',
    load: async () => (await import('./commands/unpublish.ts')).unpublish,
  },
  {
    name: 'deprecate',
    group,
    brief: 'Say of a published server that it should not be used any more',
    load: async () => (await import('./commands/unpublish.ts')).deprecate,
  },
];

/** `skep registry …`: what the catalogue holds. */
export const REGISTRY_COMMANDS: CommandFamily<Context> = {
  name: 'registry',
  group: 'Find servers',
  brief: 'Look into the catalogue',
  members: [
    {
      name: 'list',
      aliases: ['ls'],
      brief: 'List all servers of the catalogue',
      load: async () => (await import('./commands/registry-list.ts')).registryList,
    },
    {
      name: 'info',
      brief: 'Show one server of the catalogue',
      argument: 'server',
      load: async () => (await import('./commands/info.ts')).registryInfo,
    },
    {
      name: 'convert',
      brief: 'Write a catalogue file in the current format',
      load: async () => (await import('./commands/registry-convert.ts')).registryConvert,
    },
  ],
};
