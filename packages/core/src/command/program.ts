import { stripVTControlCharacters } from 'node:util';
import { SkepError } from '../errors/skep-error.ts';
import { toTerminal } from '../errors/to-terminal.ts';
import { nameFullDisk } from '../files/write-failure.ts';
import { paint } from '../terminal/paint.ts';
import { suggestion } from '../settings/did-you-mean.ts';
import { wrapText } from '../settings/to-help.ts';
import {
  findEntry,
  namesOf,
  type CommandFamily,
  type CommandRow,
  type Named,
  type Program,
} from './command.ts';
import type { Host } from './host.ts';
import type { Terminal } from './terminal.ts';

/** Runs one command line, without the program's name. Resolves to the exit status; failures are told. */
export async function runProgram<H extends Host>(
  program: Program<H>,
  argv: readonly string[],
  { terminal, env, open }: { terminal: Terminal; env: Host['env']; open: () => H },
): Promise<number> {
  // Whoever waits for the program hears what came of it before what is left of it ends.
  await using left = new AsyncDisposableStack();
  try {
    await dispatch(program, argv, { host: open(), left });
    return 0;
  } catch (error) {
    const { debugVariable = '' } = program;
    const debug = argv.includes('--debug') || (env[debugVariable] ?? '') !== '';
    const { text, exitCode } = toTerminal(nameFullDisk(error), { color: terminal.colorErr, debug });
    terminal.err(terminal.liveErr ? fitted(text, terminal.width) : text);
    return exitCode;
  }
}

/** The message breaks between words; what `--debug` adds below it stays as it is. */
function fitted(text: string, width: number): string {
  const [message = '', ...rest] = text.split('\n');
  const widthOf = (part: string): number => stripVTControlCharacters(part).length;
  return [...wrapText(message, width, widthOf), ...rest].join('\n');
}

const VERSION_FLAGS: ReadonlySet<string | undefined> = new Set(['--version', '-v', '-V']);

interface Running<H extends Host> {
  readonly host: H;
  /** Disposed of at the end. */
  readonly left: AsyncDisposableStack;
}

/** Runs the command that `argv` names; without one, shows what there is. */
async function dispatch<H extends Host>(
  program: Program<H>,
  argv: readonly string[],
  running: Running<H>,
): Promise<void> {
  const { terminal } = running.host;
  const { name, commands, prefix, elsewhere } = program;
  // `--debug` belongs to every command and may also stand before its name.
  const debug = argv.slice(0, argv[0] === '--debug' ? 1 : 0);
  const [first, ...rest] = argv.slice(debug.length);
  const word = VERSION_FLAGS.has(first) ? 'version' : first;
  if (word === undefined || ['--help', '-h', 'help'].includes(word)) {
    if (word === 'help' && rest.length > 0) return dispatch(program, [...rest, '--help'], running);
    return terminal.out(overview(program, terminal.colorOut));
  }
  if (word.startsWith('-')) {
    throw new SkepError('usage/unknown-flag', {
      message: `unknown flag "${word}"`,
      hint: `flags come after the command: ${name} ${commands[0]?.name ?? ''} --help`,
    });
  }
  const entry = find(commands, word, { prefix, help: name, elsewhere });
  if (!('members' in entry)) return execute(entry, [...debug, ...rest], { program, ...running });
  const [member, ...others] = rest;
  if (member === undefined || member === '--help' || member === '-h') {
    return terminal.out(familyHelp(program, entry, terminal.colorOut));
  }
  const where = `${name} ${entry.name}`;
  const row = find(entry.members, member, { prefix: `${where} `, help: where });
  return execute(row, [...debug, ...others], { program, ...running });
}

async function execute<H extends Host>(
  row: CommandRow<H>,
  argv: readonly string[],
  { program, host, left }: Running<H> & { readonly program: Program<H> },
): Promise<void> {
  const shortcut = await row.shortcut?.();
  if (shortcut === undefined) return (await row.load(program)).execute(argv, host);
  const mine = left.use(await shortcut(argv, host));
  if (mine) await (await row.load(program)).execute(argv, mine.host);
}

interface FindOptions {
  readonly prefix: string;
  /** What is called with `--help`. */
  readonly help: string;
  readonly elsewhere?: ReadonlyMap<string, string> | undefined;
}

function find<E extends Named>(
  entries: readonly E[],
  word: string,
  { prefix, help, elsewhere }: FindOptions,
): E {
  const found = findEntry(entries, word);
  if (found !== undefined) return found;
  const isShown = (entry: E): boolean => entry.group !== undefined || entries.every((one) => !one.group);
  const here = elsewhere?.get(word);
  throw new SkepError('usage/unknown-command', {
    message: `unknown command "${prefix}${word}"`,
    hint: here
      ? `use ${here}`
      : suggestion(word, entries.filter(isShown).flatMap(namesOf), `see ${help} --help`),
  });
}

function overview<H extends Host>(program: Program<H>, color: boolean): string {
  const shown = program.commands.filter((entry) => entry.group !== undefined);
  const groups = [...new Set(shown.map((entry) => entry.group ?? ''))].map((group) =>
    [group, ...shown.filter((entry) => entry.group === group).map((entry) => line(program, entry))].join(
      '\n',
    ),
  );
  const blocks = [...program.about, ...groups].map((block) =>
    block.replace(/^.+(?=\n)/, (title) => paint('bold', title, color)),
  );
  return `${[...blocks, ...program.closing].join('\n\n')}\n`;
}

function familyHelp<H extends Host>(program: Program<H>, family: CommandFamily<H>, color: boolean): string {
  const commands = [...program.commands, ...family.members];
  const lines = family.members.map((row) => line({ commands }, row)).join('\n');
  const usage = `${paint('bold', 'Usage:', color)} ${program.name} ${family.name} COMMAND`;
  return `${[family.brief, usage, lines].join('\n\n')}\n`;
}

function line({ commands }: { commands: readonly Named[] }, entry: Named): string {
  const width = Math.max(...commands.map((one) => namesOf(one).join(', ').length)) + 2;
  return `  ${namesOf(entry).join(', ').padEnd(width)}${entry.brief}`;
}
