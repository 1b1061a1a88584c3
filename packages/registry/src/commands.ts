import type { Command } from './command.ts';

interface CommandRow {
  readonly name: string;
  /** One line for the list of commands, known without loading the command. */
  readonly brief: string;
  readonly load: () => Promise<Command>;
}

/** Every command. Its code is loaded when it is called, so that `version` does not pay for `serve`. */
export const COMMANDS: readonly CommandRow[] = [
  {
    name: 'serve',
    brief: 'serve the registries of a configuration file',
    load: async () => (await import('./commands/serve.ts')).serve,
  },
  {
    name: 'validate',
    brief: 'check a configuration or a catalogue file',
    load: async () => (await import('./commands/validate.ts')).validate,
  },
  {
    name: 'explain',
    brief: 'say why a caller may or may not do or see something',
    load: async () => (await import('./commands/explain.ts')).explain,
  },
  {
    name: 'migrate',
    brief: 'show or change the schema of the store',
    load: async () => (await import('./commands/migrate.ts')).migrate,
  },
  {
    name: 'prime-db',
    brief: 'prepare a PostgreSQL database for the application user',
    load: async () => (await import('./commands/prime-db.ts')).primeDb,
  },
  {
    name: 'version',
    brief: 'show what is installed',
    load: async () => (await import('./commands/version.ts')).version,
  },
];
