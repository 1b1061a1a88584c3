import { defineSettings, flag, settingsOf, valuesOf, type Values } from '../settings/define-settings.ts';
import type { Field, Settings } from '../settings/field.ts';
import { fromArgv, type Positional } from '../settings/from-argv.ts';
import { fromEnv } from '../settings/from-env.ts';
import { mergeSettings, checkRequired } from '../settings/merge.ts';
import { toHelp, type Example, type HelpStyle } from '../settings/to-help.ts';
import type { Host } from './host.ts';

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

export interface CommandDefinition<Rows extends readonly Field[], H extends Host> {
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
  run(input: CommandInput<Rows>, host: H): Promise<void>;
}

/** One command, ready to be run or described. */
export interface Command<H extends Host> {
  readonly summary: string;
  readonly settings: readonly Field[];
  help(style: HelpStyle): string;
  /** Parses the arguments after the command's name, answers `--help`, or runs. */
  execute(argv: readonly string[], host: H): Promise<void>;
}

/** A program of commands: dispatch, help, completion and the reference page derive from it. */
export interface Program<H extends Host> {
  /** As it is called. */
  readonly name: string;
  /** Paragraphs of the overview around the commands; the first line of a block is its title. */
  readonly about: readonly string[];
  readonly closing: readonly string[];
  readonly commands: readonly CommandEntry<H>[];
  /** What errors put before the name of an unknown command. */
  readonly prefix: string;
  /** Does what `--debug` does. */
  readonly debugVariable?: string;
  /**
   * What arguments can be, by `CommandRow.argument`, after those that were given, and values of flags, by `Field.offers`;
   * asked only when one is completed.
   */
  readonly offers?: Readonly<
    Record<string, (host: H, given: readonly string[]) => Promise<readonly Offer[]>>
  >;
  /** Those of `offers` that stand for any number of arguments. */
  readonly repeated?: readonly string[];
  /** What people type who come from another tool, with the command that does it here. */
  readonly elsewhere?: ReadonlyMap<string, string>;
}

/** What is shown of a command or a family of them. */
export interface Named {
  readonly name: string;
  readonly aliases?: readonly string[];
  /** Heading in the overview; absent for commands that are not shown there. */
  readonly group?: string;
  /** One line, no full stop. */
  readonly brief: string;
}

export type CommandEntry<H extends Host> = CommandRow<H> | CommandFamily<H>;

export interface CommandRow<H extends Host> extends Named {
  /** What completion offers: one of `Program.offers`, or `shell`. */
  readonly argument?: string;
  /** Given the program, because completion looks at all of it. */
  readonly load: (program: Program<H>) => Promise<Command<H>>;
  /** Tried first, loads little: undefined when all is done. */
  readonly shortcut?: () => Promise<(argv: readonly string[], host: H) => Promise<Left<H> | undefined>>;
}

/** What is left to a command, which is disposed of when that is over, and what it failed with is told. */
export interface Left<H extends Host> extends AsyncDisposable {
  /** To go on with. */
  readonly host: H;
}

export interface CommandFamily<H extends Host> extends Named {
  readonly members: readonly CommandRow<H>[];
}

/** One thing that a shell may put in place of the word at the cursor. */
export interface Offer {
  readonly value: string;
  readonly brief: string;
}

/** The flags of every command: a program says what `--debug` shows, and how it words `--help`. */
export function commonSettings(debug: string, env: Pick<Field, 'env'>, help = 'Show this help') {
  return settingsOf({ group: 'General' }, [
    flag('bool', 'debug', debug, { default: false, ...env }),
    flag('bool', 'help', help, { short: 'h' }),
  ]);
}

/** `--format` of commands that show data. */
export function formatSettings(brief: string) {
  return settingsOf({ group: 'Output' }, [
    flag('choice', 'format', brief, { short: 'o', choices: ['text', 'json'], default: 'text' }),
  ]);
}

/**
 * Makes what gives definitions their life in a program; the type of `input.values` in `run` follows from `settings`. A
 * program with other names for its variables says how they are read.
 */
export function commandDefiner<H extends Host>(variables = (env: Host['env']) => env) {
  return <const Rows extends readonly Field[]>(definition: CommandDefinition<Rows, H>): Command<H> => {
    const { summary } = definition;
    const rows = defineSettings(definition.settings);
    const help = (style: HelpStyle): string => toHelp({ ...definition, rows }, style);
    return {
      summary,
      settings: rows,
      help,
      async execute(argv, host) {
        const { terminal } = host;
        const parsed = fromArgv({ ...definition, rows }, argv);
        if (parsed.help) return terminal.out(help({ width: terminal.width, color: terminal.colorOut }));
        const warn = (warning: string): void => terminal.err(`Warning: ${warning}\n`);
        for (const warning of parsed.warnings) warn(warning);
        const settings = mergeSettings(rows, [parsed.settings, fromEnv(rows, variables(host.env), warn)]);
        checkRequired(rows, settings);
        const { positionals, rest } = parsed;
        const given = new Set(parsed.settings.keys());
        await definition.run({ values: valuesOf(rows, settings), settings, given, positionals, rest }, host);
      },
    };
  };
}

/** The command or family of that name. */
export function findEntry<E extends Named>(entries: readonly E[], word: string): E | undefined {
  return entries.find((entry) => namesOf(entry).includes(word));
}

/** What a command is called. */
export function namesOf({ name, aliases = [] }: Named): readonly string[] {
  return [name, ...aliases];
}
