import { expect, test } from 'vitest';
import type { CommandRow } from '@skep/core/command/command.ts';
import type { Context } from './cli/context.ts';
import { commandUnderTest } from './command-under-test.fixture.ts';
import { COMMANDS, SKEP } from './commands.ts';

const rows: readonly CommandRow<Context>[] = COMMANDS.flatMap((row) =>
  'members' in row ? row.members : [row],
);

test.each(rows.map((row) => [row.name, row] as const))(
  '%s can be loaded and says how it is used',
  async (_, row) => {
    const command = await row.load(SKEP);
    const help = command.help({ width: 100, color: false });
    expect(help).toContain(`Usage: skep `);
    expect(help).toContain(row.name);
    expect(command.settings.map((field) => field.flag)).toContain('help');
  },
);

test('what people type who come from another tool leads to a command, and is none', () => {
  const names = COMMANDS.flatMap((row) => [row.name, ...(row.aliases ?? [])]);
  for (const [word, here] of SKEP.elsewhere ?? []) {
    expect(names).not.toContain(word);
    expect(here).toMatch(new RegExp(`^skep (?:${names.join('|')})\\b`));
  }
});

test.each([
  ['ps', 'list'],
  ['inspect', 'status'],
  ['inspect', 'info'],
  ['update', 'upgrade'],
  ['install', 'run'],
  ['add', 'run'],
  ['remove', 'rm'],
  ['delete', 'rm'],
  ['doctor', undefined],
  ['client', undefined],
])('%s, which people typed in vain, leads to %s or is a command by now', (word, here) => {
  const isCommand = COMMANDS.some(({ name }) => name === word);
  const hint = SKEP.elsewhere?.get(word);
  if (here === undefined) expect(isCommand).toBe(true);
  else expect(hint).toMatch(new RegExp(`\\bskep ${here}\\b`));
});

test.each([[], ...COMMANDS.flatMap((row) => ('members' in row ? [[row.name]] : []))])(
  'the overview fits a terminal of 80 columns: skep %s',
  async (...words) => {
    const skep = await commandUnderTest({ supervisor: 'none' });
    const text = await skep.output([...words, '--help']);
    expect(text.split('\n').filter((line) => line.length > 80)).toEqual([]);
  },
);

test('no two commands share a name', () => {
  const names = COMMANDS.flatMap((row) =>
    'members' in row ? [row.name] : [row.name, ...(row.aliases ?? [])],
  );
  expect(new Set(names).size).toBe(names.length);
});
