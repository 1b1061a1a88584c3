import { valuesOf, type Values } from '@skep/core/settings/define-settings.ts';
import { defineSettings } from '@skep/core/settings/define-settings.ts';
import type { Field, Settings } from '@skep/core/settings/field.ts';
import { fromArgv, type Positional } from '@skep/core/settings/from-argv.ts';
import { fromEnv } from '@skep/core/settings/from-env.ts';
import { mergeSettings } from '@skep/core/settings/merge.ts';
import { toHelp, type Example } from '@skep/core/settings/to-help.ts';
import type { Context } from './context.ts';

export interface CommandInput<Rows extends readonly Field[]> {
  readonly values: Values<Rows>;
  /** The same with where each came from. */
  readonly settings: Settings;
  /** Names of the settings that were given as flags. */
  readonly given: ReadonlySet<string>;
  readonly positionals: readonly string[];
  /** What stood after `--`; undefined when nothing did. */
  readonly rest: readonly string[] | undefined;
}

export interface CommandDefinition<Rows extends readonly Field[]> {
  /** `skep stop [flags] [NAME...]` */
  readonly usage: string;
  /** One sentence without full stop. */
  readonly summary: string;
  readonly description?: readonly string[];
  readonly examples?: readonly Example[];
  readonly positionals?: readonly Positional[];
  /** What follows `--` is passed on instead of being positional. */
  readonly rest?: boolean;
  readonly settings: Rows;
  run(input: CommandInput<Rows>, context: Context): Promise<void>;
}

/** One command, ready to be run or described; everything derives from its definition. */
export interface Command {
  readonly summary: string;
  readonly settings: readonly Field[];
  help(style: { readonly width: number; readonly color: boolean }): string;
  /** Parses the arguments after the command's name, answers `--help`, or runs. */
  execute(argv: readonly string[], context: Context): Promise<void>;
}

const group = 'General';

/** Flags that every command has. */
export const commonSettings = defineSettings([
  {
    name: 'debug',
    kind: 'bool',
    flag: 'debug',
    env: 'SKEP_DEBUG',
    group,
    brief: 'Show what is behind an error',
  },
  { name: 'help', kind: 'bool', flag: 'help', short: 'h', group, brief: 'Show this help' },
]);

/** Gives a definition its life; the type of `input.values` in `run` follows from `settings`. */
export function defineCommand<const Rows extends readonly Field[]>(
  definition: CommandDefinition<Rows>,
): Command {
  const { usage, summary, description, examples, positionals, rest, settings: rows } = definition;
  const help = (style: { readonly width: number; readonly color: boolean }): string =>
    toHelp(
      {
        usage,
        summary,
        ...(description === undefined ? {} : { description }),
        ...(examples === undefined ? {} : { examples }),
        rows,
      },
      style,
    );
  return {
    summary,
    settings: rows,
    help,
    async execute(argv, context) {
      const { terminal, env } = context;
      const shape = {
        rows,
        ...(positionals === undefined ? {} : { positionals }),
        ...(rest ? { rest } : {}),
      };
      const parsed = fromArgv(shape, argv);
      if (parsed.help) return terminal.out(help({ width: terminal.width, color: terminal.colorOut }));
      for (const warning of parsed.warnings) terminal.err(`Warning: ${warning}\n`);
      const settings = mergeSettings(rows, [parsed.settings, fromEnv(rows, env)]);
      await definition.run(
        {
          values: valuesOf(rows, settings),
          settings,
          given: new Set(parsed.settings.keys()),
          positionals: parsed.positionals,
          rest: parsed.rest,
        },
        context,
      );
    },
  };
}
