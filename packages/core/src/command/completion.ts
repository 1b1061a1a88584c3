import { SkepError } from '../errors/skep-error.ts';
import type { Field } from '../settings/field.ts';
import { printable } from '../terminal/printable.ts';
import {
  commandDefiner,
  findEntry,
  type Command,
  type Program,
  type CommandRow,
  type Named,
  type Offer,
} from './command.ts';
import { completionScript, SHELLS } from './completion-scripts.ts';
import type { Host } from './host.ts';

/** Prints the completion script for a shell. */
export function completionCommand<H extends Host>(
  program: Program<H>,
  settings: readonly Field[],
): Command<H> {
  return commandDefiner<H>()({
    usage: `${program.name} completion ${SHELLS.join('|')}`,
    summary: 'Print the completion script for a shell',
    examples: [
      {
        command: `source <(${program.name} completion bash)`,
        what: 'For this shell; put it into ~/.bashrc to keep it',
      },
    ],
    positionals: [{ name: 'SHELL', required: true }],
    settings,
    async run({ positionals: [shell = ''] }, { terminal }) {
      const script = completionScript(shell, program.name);
      if (script !== undefined) return terminal.out(script);
      throw new SkepError('usage/invalid-value', {
        message: `unknown shell "${shell}"`,
        hint: `choose one of: ${SHELLS.join(', ')}`,
      });
    },
  });
}

/** What the scripts call at each Tab. */
export function completeCommand<H extends Host>(program: Program<H>, settings: readonly Field[]): Command<H> {
  return commandDefiner<H>()({
    usage: `${program.name} complete -- WORDS...`,
    summary: 'Answer a completion script',
    rest: true,
    settings,
    async run({ rest = [] }, host) {
      const offers = await offersFor(rest, program, host);
      host.terminal.out(offers.map(({ value, brief }) => `${value}\t${printable(brief)}\n`).join(''));
    },
  });
}

/** What a shell takes without quotes. Names of a catalogue that hold anything else are not offered. */
const PLAIN = /^[\w./:=@+-]+$/u;

/**
 * What can stand in place of the last of `words`, which are all words after the program's name up to the cursor, as they
 * were typed. Nothing in them is expanded or run.
 */
export async function offersFor<H extends Host>(
  words: readonly string[],
  program: Program<H>,
  host: H,
): Promise<readonly Offer[]> {
  const current = words.at(-1) ?? '';
  const offers = await candidates(words.slice(0, -1), { current, program, host });
  return offers.filter(({ value }) => value.startsWith(current) && PLAIN.test(value));
}

interface Typing<H extends Host> {
  readonly current: string;
  readonly program: Program<H>;
  readonly host: H;
}

async function candidates<H extends Host>(
  [word, ...rest]: readonly string[],
  typing: Typing<H>,
): Promise<readonly Offer[]> {
  const { commands } = typing.program;
  if (word === undefined) return rowOffers(commands.filter(({ group }) => group !== undefined));
  const entry = findEntry(commands, word);
  if (entry === undefined || !('members' in entry)) return entry ? commandOffers(entry, rest, typing) : [];
  const [member, ...left] = rest;
  if (member === undefined) return rowOffers(entry.members);
  const row = findEntry(entry.members, member);
  return row === undefined ? [] : commandOffers(row, left, typing);
}

async function commandOffers<H extends Host>(
  row: CommandRow<H>,
  given: readonly string[],
  { current, program, host }: Typing<H>,
): Promise<readonly Offer[]> {
  // What stands behind -- belongs to the server.
  if (given.includes('--')) return [];
  const { settings } = await row.load(program);
  const open = valueFor(settings, given.at(-1));
  if (open !== undefined) return valueOffers(open, '', { program, host });
  const [flag = '', value] = current.split('=', 2);
  const inline = value === undefined ? undefined : fieldOf(settings, flag);
  if (inline !== undefined) return valueOffers(inline, `${flag}=`, { program, host });
  if (current.startsWith('-')) return flagOffers(settings);
  if (row.argument === undefined) return [];
  const taken = given.filter((word, at) => !word.startsWith('-') && !valueFor(settings, given[at - 1]));
  if (taken.length > 0 && program.repeated?.includes(row.argument) !== true) return [];
  if (row.argument === 'shell') return SHELLS.map((value) => ({ value, brief: '' }));
  const offers = (await program.offers?.[row.argument]?.(host, taken)) ?? [];
  return offers.filter((offer) => !taken.includes(offer.value));
}

const rowOffers = (entries: readonly Named[]): readonly Offer[] =>
  entries.map(({ name, brief }) => ({ value: name, brief }));

const fieldOf = (settings: readonly Field[], word: string): Field | undefined =>
  settings.find(({ flag, short }) => word === `--${flag ?? ''}` || word === `-${short ?? ''}`);

/** The flag that `word` is, when its value is the next word. */
function valueFor(settings: readonly Field[], word: string | undefined): Field | undefined {
  const field = word?.startsWith('-') === true ? fieldOf(settings, word) : undefined;
  return field?.kind === 'bool' ? undefined : field;
}

/** What a flag may be given, as its row says. */
async function valueOffers<H extends Host>(
  { kind, choices, notYetValues = [], offers = [] }: Field,
  prefix: string,
  { program, host }: Pick<Typing<H>, 'program' | 'host'>,
): Promise<readonly Offer[]> {
  const words = choices ?? (kind === 'bool' ? ['true', 'false'] : offers);
  const found =
    typeof words === 'string'
      ? ((await program.offers?.[words]?.(host, [])) ?? [])
      : words.filter((word) => !notYetValues.includes(word)).map((value) => ({ value, brief: '' }));
  return found.map(({ value, brief }) => ({ value: prefix + value, brief }));
}

const flagOffers = (settings: readonly Field[]): readonly Offer[] =>
  settings.flatMap(({ flag, brief, notYet, deprecated }) =>
    flag === undefined || notYet === true || deprecated !== undefined ? [] : [{ value: `--${flag}`, brief }],
  );
