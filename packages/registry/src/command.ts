import type { Positional } from '@skep/core/settings/from-argv.ts';
import type { Field, Settings } from '@skep/core/settings/field.ts';
import type { Example } from '@skep/core/settings/to-help.ts';
import { defineSettings } from '@skep/core/settings/define-settings.ts';
import type { Host } from './host.ts';

/** A command as its module declares it; reading arguments and help follow from the rows. */
export interface Command {
  /** After the program name, for the usage line. */
  readonly usage: string;
  readonly summary: string;
  readonly description?: readonly string[];
  readonly examples?: readonly Example[];
  readonly rows: readonly Field[];
  readonly positionals?: readonly Positional[];
  /** Returns the exit status; failures are thrown. `settings` holds flags, variables and defaults, in this order. */
  readonly run: (host: Host, settings: Settings, positionals: readonly string[]) => Promise<number>;
}

/** Rows that every command has. */
export const COMMON_ROWS = defineSettings([
  {
    name: 'debug',
    kind: 'bool',
    flag: 'debug',
    group: 'General',
    brief: 'log everything, and show the cause of an error',
    default: false,
  },
  { name: 'help', kind: 'bool', flag: 'help', short: 'h', group: 'General', brief: 'show this help' },
]);

export const FORMAT_ROW = {
  name: 'format',
  kind: 'choice',
  flag: 'format',
  group: 'Output',
  brief: 'how to print the result',
  choices: ['text', 'json'],
  default: 'text',
} as const satisfies Field;
