import type { CommandFamily } from '@skep/core/command/command.ts';
import type { Context } from './cli/context.ts';

/** `skep config …`: what holds for every run. */
export const CONFIG_COMMANDS: CommandFamily<Context> = {
  name: 'config',
  group: 'Skep itself',
  brief: 'Set what holds for every run: the catalogue, certificates',
  members: [
    {
      name: 'list',
      aliases: ['ls'],
      brief: 'List the keys with their values',
      load: async () => (await import('./commands/config-keys.ts')).configList,
    },
    {
      name: 'get',
      brief: 'Print the value of a key',
      argument: 'config',
      load: async () => (await import('./commands/config-keys.ts')).configGet,
    },
    {
      name: 'set',
      brief: 'Set a key',
      argument: 'config',
      load: async () => (await import('./commands/config-keys.ts')).configSet,
    },
    {
      name: 'unset',
      brief: 'Remove a key',
      argument: 'config',
      load: async () => (await import('./commands/config-keys.ts')).configUnset,
    },
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
    {
      name: 'set-ca-cert',
      brief: 'Trust a certificate authority during builds',
      load: async () => (await import('./commands/config-keys.ts')).setCaCert,
    },
    {
      name: 'get-ca-cert',
      brief: 'Show which authority is trusted during builds',
      load: async () => (await import('./commands/config-keys.ts')).getCaCert,
    },
    {
      name: 'unset-ca-cert',
      brief: 'Trust no other certificate authority during builds',
      load: async () => (await import('./commands/config-keys.ts')).unsetCaCert,
    },
    {
      name: 'set-build-env',
      brief: 'Give a variable to what fetches packages',
      load: async () => (await import('./commands/config-build-env.ts')).setBuildEnv,
    },
    {
      name: 'get-build-env',
      brief: 'Show the variables of what fetches packages',
      load: async () => (await import('./commands/config-build-env.ts')).getBuildEnv,
    },
    {
      name: 'unset-build-env',
      brief: 'Take a variable of builds away again',
      load: async () => (await import('./commands/config-build-env.ts')).unsetBuildEnv,
    },
    {
      name: 'set-build-auth-file',
      brief: 'Store a login file for what fetches packages',
      load: async () => (await import('./commands/config-build-auth-file.ts')).setBuildAuthFile,
    },
    {
      name: 'get-build-auth-file',
      brief: 'Show which login files are stored',
      load: async () => (await import('./commands/config-build-auth-file.ts')).getBuildAuthFile,
    },
    {
      name: 'unset-build-auth-file',
      brief: 'Remove a login file of builds',
      load: async () => (await import('./commands/config-build-auth-file.ts')).unsetBuildAuthFile,
    },
  ],
};
