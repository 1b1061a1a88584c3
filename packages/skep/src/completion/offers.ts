import type { Field } from '@skep/core/settings/field.ts';
import type { ArgumentKind, CommandFamily, CommandRow } from '../commands.ts';

/** One thing that a shell may put in place of the word at the cursor. */
export interface Offer {
  readonly value: string;
  readonly brief: string;
}

export interface OfferSources {
  readonly commands: readonly (CommandRow | CommandFamily)[];
  /** What a command's argument can be; asked only when such an argument is completed. */
  readonly arguments: Readonly<Record<ArgumentKind, () => Promise<readonly Offer[]>>>;
}

/** What a shell takes as it stands, without quotes. Names of a catalogue that hold anything else are not offered. */
const PLAIN = /^[\w./:=@+-]+$/u;

/**
 * What can stand in place of the last of `words`, which are all words after the program's name up to the cursor, as they
 * were typed. Nothing in them is expanded or run.
 */
export async function offersFor(words: readonly string[], sources: OfferSources): Promise<readonly Offer[]> {
  const current = words.at(-1) ?? '';
  const offers = await candidates(words.slice(0, -1), current, sources);
  return offers.filter(({ value }) => value.startsWith(current) && PLAIN.test(value));
}

async function candidates(
  before: readonly string[],
  current: string,
  sources: OfferSources,
): Promise<readonly Offer[]> {
  const [word, ...rest] = before;
  if (word === undefined) return rowOffers(sources.commands);
  const row = find(sources.commands, word);
  if (row === undefined) return [];
  if (!('members' in row)) return commandOffers(row, rest, { current, sources });
  const [member, ...memberRest] = rest;
  if (member === undefined) return rowOffers(row.members.map((one) => ({ ...one, group: row.group })));
  const found = find(row.members, member);
  return found === undefined ? [] : commandOffers(found, memberRest, { current, sources });
}

interface Typing {
  readonly current: string;
  readonly sources: OfferSources;
}

async function commandOffers(
  row: CommandRow,
  given: readonly string[],
  { current, sources }: Typing,
): Promise<readonly Offer[]> {
  // What stands behind -- belongs to the server.
  if (given.includes('--')) return [];
  const { settings } = await row.load();
  const open = valueFor(settings, given.at(-1));
  if (open !== undefined) return choiceOffers(open, '');
  const [flag = '', value] = current.split('=', 2);
  const inline = value === undefined ? undefined : fieldOf(settings, flag);
  if (inline !== undefined) return choiceOffers(inline, `${flag}=`);
  if (current.startsWith('-')) return flagOffers(settings);
  if (row.argument === undefined) return [];
  const taken = given.filter((word, at) => !word.startsWith('-') && !valueFor(settings, given[at - 1]));
  if (taken.length > 0 && row.argument !== 'workload') return [];
  const offers = await sources.arguments[row.argument]();
  return offers.filter((offer) => !taken.includes(offer.value));
}

const rowOffers = (rows: readonly (CommandRow | CommandFamily)[]): readonly Offer[] =>
  rows.flatMap(({ name, group, brief }) => (group === undefined ? [] : [{ value: name, brief }]));

function find<Row extends CommandRow | CommandFamily>(rows: readonly Row[], word: string): Row | undefined {
  return rows.find((row) => row.name === word || ('load' in row && row.aliases?.includes(word) === true));
}

const fieldOf = (settings: readonly Field[], word: string): Field | undefined =>
  settings.find(({ flag, short }) => word === `--${flag ?? ''}` || word === `-${short ?? ''}`);

/** The flag that `word` is, when its value is the next word. */
function valueFor(settings: readonly Field[], word: string | undefined): Field | undefined {
  const field = word?.startsWith('-') === true ? fieldOf(settings, word) : undefined;
  return field?.kind === 'bool' ? undefined : field;
}

const choiceOffers = ({ choices = [], notYetValues = [] }: Field, prefix: string): readonly Offer[] =>
  choices
    .filter((choice) => !notYetValues.includes(choice))
    .map((choice) => ({ value: prefix + choice, brief: '' }));

const flagOffers = (settings: readonly Field[]): readonly Offer[] =>
  settings.flatMap(({ flag, brief, notYet, deprecated }) =>
    flag === undefined || notYet === true || deprecated !== undefined ? [] : [{ value: `--${flag}`, brief }],
  );
