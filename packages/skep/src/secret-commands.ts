import type { CommandFamily } from '@skep/core/command/command.ts';
import type { Context } from './cli/context.ts';

/** `skep secret …`: what people do with secrets, and where they are kept. */
export const SECRET_COMMANDS: CommandFamily<Context> = {
  name: 'secret',
  group: 'Skep itself',
  brief: 'Keep secrets for servers',
  members: [
    {
      name: 'set',
      brief: 'Store a secret: what is piped, or asked for',
      argument: 'secret',
      load: async () => (await import('./commands/secret.ts')).secretSet,
    },
    {
      name: 'get',
      brief: 'Print a secret',
      argument: 'secret',
      load: async () => (await import('./commands/secret.ts')).secretGet,
    },
    {
      name: 'list',
      aliases: ['ls'],
      brief: 'List the names of secrets',
      load: async () => (await import('./commands/secret.ts')).secretList,
    },
    {
      name: 'delete',
      aliases: ['rm'],
      brief: 'Delete a secret',
      argument: 'secret',
      load: async () => (await import('./commands/secret.ts')).secretDelete,
    },
    {
      name: 'setup',
      brief: 'Choose where secrets are kept',
      load: async () => (await import('./commands/secret-provider.ts')).secretSetup,
    },
    {
      name: 'provider',
      brief: 'Say where secrets are kept, or choose it without a question',
      load: async () => (await import('./commands/secret-provider.ts')).secretProvider,
    },
    {
      name: 'reset-keyring',
      brief: 'Forget the password of the store that a keyring holds',
      load: async () => (await import('./commands/secret-provider.ts')).secretResetKeyring,
    },
  ],
};
