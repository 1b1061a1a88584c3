import type { Program } from '@skep/core/command/command.ts';
import { commonSettings, type Host } from './command.ts';

const group = 'Commands:';

/** Every command. Its code is loaded when it is called, so that `version` does not pay for `serve`. */
export const REGISTRY: Program<Host> = {
  name: 'skep-registry',
  about: ['skep-registry serves governed catalogues of MCP servers', 'Usage: skep-registry COMMAND [flags]'],
  commands: [
    {
      name: 'serve',
      group,
      brief: 'serve the registries of a configuration file',
      load: async () => (await import('./serve.ts')).serve,
    },
    {
      name: 'validate',
      group,
      brief: 'check a configuration or a catalogue file',
      load: async () => (await import('./validate.ts')).validate,
    },
    {
      name: 'explain',
      group,
      brief: 'say why a caller may or may not do or see something',
      load: async () => (await import('./explain.ts')).explain,
    },
    {
      name: 'migrate',
      group,
      brief: 'show or change the schema of the store',
      load: async () => (await import('./migrate.ts')).migrate,
    },
    {
      name: 'prime-db',
      group,
      brief: 'prepare a PostgreSQL database for the application user',
      load: async () => (await import('./prime-db.ts')).primeDb,
    },
    {
      name: 'version',
      group,
      brief: 'show what is installed',
      load: async () => (await import('./version.ts')).version,
    },
    {
      name: 'completion',
      group,
      brief: 'print the completion script for a shell',
      argument: 'shell',
      load: async (program) =>
        (await import('@skep/core/command/completion.ts')).completionCommand(program, commonSettings),
    },
    {
      name: 'complete',
      brief: 'answer a completion script',
      load: async (program) =>
        (await import('@skep/core/command/completion.ts')).completeCommand(program, commonSettings),
    },
  ],
  closing: [
    `Try it without a configuration of your own: write one that serves a catalogue file to everybody,
check it, serve it.
  skep-registry validate --config registry.yaml
  skep-registry serve --config registry.yaml`,
    'Help for a command: skep-registry COMMAND --help',
  ],
  prefix: '',
};
