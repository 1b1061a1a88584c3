import { styleText } from 'node:util';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { suggestion } from '@skep/core/settings/did-you-mean.ts';
import { COMMANDS, type CommandFamily, type CommandRow } from '../commands.ts';
import type { Context } from './context.ts';

type Row = CommandRow | CommandFamily;

/** Runs the command that `argv` (without node and script) names; without one, shows what there is. */
export async function dispatch(argv: readonly string[], context: Context): Promise<void> {
  const { terminal } = context;
  const [word, ...rest] = argv;
  if (word === undefined || word === '--help' || word === '-h' || word === 'help') {
    const [about, ...more] = word === 'help' ? rest : [];
    if (about === undefined) return terminal.out(overview(terminal.colorOut));
    return dispatch([about, ...more, '--help'], context);
  }
  if (word.startsWith('-')) {
    const message = `unknown flag "${word}"`;
    throw new SkepError('usage/unknown-flag', {
      message,
      hint: 'flags come after the command: skep run --help',
    });
  }
  const row = find(COMMANDS, word, 'skep');
  if (!('members' in row)) return execute(row, rest, context);
  const [member, ...memberRest] = rest;
  if (member === undefined || member === '--help' || member === '-h') {
    return terminal.out(familyHelp(row, terminal.colorOut));
  }
  const command = await find(row.members, member, `skep ${row.name}`).load();
  return command.execute(memberRest, context);
}

async function execute(row: CommandRow, argv: readonly string[], context: Context): Promise<void> {
  const shortcut = await row.shortcut?.();
  const left = shortcut ? await shortcut(argv, context) : context;
  if (left) await (await row.load()).execute(argv, left);
}

function find<R extends Row>(rows: readonly R[], word: string, prefix: string): R {
  const found = rows.find((row) => namesOf(row).includes(word));
  if (found) return found;
  const shown = rows.filter((row) => 'members' in row || row.group !== undefined || prefix !== 'skep');
  throw new SkepError('usage/unknown-command', {
    message: `unknown command "${prefix} ${word}"`,
    hint: suggestion(word, shown.flatMap(namesOf), `see ${prefix} --help`),
  });
}

function namesOf(row: Row): readonly string[] {
  return 'members' in row ? [row.name] : [row.name, ...(row.aliases ?? [])];
}

function overview(color: boolean): string {
  const bold = (text: string): string => (color ? styleText('bold', text, { validateStream: false }) : text);
  const shown = COMMANDS.filter((row) => row.group !== undefined);
  const groups = [...new Set(shown.map((row) => row.group ?? ''))].map((group) => {
    const lines = shown.filter((row) => row.group === group).map(line);
    return `${bold(group)}\n${lines.join('\n')}`;
  });
  return [
    'Skep runs MCP servers, each in its own container or sandbox, behind one local URL.',
    `${bold('Try')}\n  skep search time\n  skep run everything\n  skep list`,
    ...groups,
    'skep COMMAND --help says more about a command.\n',
  ].join('\n\n');
}

function familyHelp(family: CommandFamily, color: boolean): string {
  const usage = color ? styleText('bold', 'Usage:', { validateStream: false }) : 'Usage:';
  const lines = family.members.map(line).join('\n');
  return `${family.brief}\n\n${usage} skep ${family.name} COMMAND\n\n${lines}\n`;
}

function line(row: Row): string {
  return `  ${namesOf(row).join(', ').padEnd(16)}${row.brief}`;
}
