import type { CommandFamily } from '@skep/core/command/command.ts';
import type { Context } from './cli/context.ts';

/** `skep auth …`: who is signed in to servers that run elsewhere. */
export const AUTH_COMMANDS: CommandFamily<Context> = {
  name: 'auth',
  group: 'Run servers',
  brief: 'Sign in to servers that run elsewhere',
  members: [
    {
      name: 'login',
      brief: 'Sign in to the server of a workload that runs elsewhere',
      argument: 'workload',
      load: async () => (await import('./commands/auth.ts')).authLogin,
    },
    {
      name: 'logout',
      brief: 'Sign out of it again',
      argument: 'workload',
      load: async () => (await import('./commands/auth.ts')).authLogout,
    },
    {
      name: 'status',
      brief: 'Say who is signed in where',
      argument: 'workload',
      load: async () => (await import('./commands/auth.ts')).authStatus,
    },
  ],
};
