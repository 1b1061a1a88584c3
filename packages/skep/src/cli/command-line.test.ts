import { stripVTControlCharacters } from 'node:util';
import { describe, expect, test } from 'vitest';
import { commandUnderTest } from '../command-under-test.fixture.ts';
import { namesOf, type CommandEntry } from '@skep/core/command/command.ts';
import type { Context } from '../cli/context.ts';
import { COMMANDS } from '../commands.ts';

const bench = (): ReturnType<typeof commandUnderTest> => commandUnderTest({ supervisor: 'none' });

/** The words of every command, those that are not shown included. */
const everyCommand: readonly string[] = COMMANDS.flatMap((row: CommandEntry<Context>) =>
  'members' in row
    ? row.members.map(({ name }) => `${row.name} ${name}`)
    : [row.name, ...(row.aliases ?? [])],
);
const families = COMMANDS.flatMap((row) => ('members' in row ? [row.name] : []));

describe('without a command', () => {
  test.each(['', '--help', '-h', 'help'])('"skep %s" shows what there is, in groups', async (line) => {
    const skep = await bench();
    const { status, out, err } = await skep.run(line);
    expect({ status, err }).toEqual({ status: 0, err: '' });
    for (const row of COMMANDS) {
      const shown = new RegExp(`^  ${row.name}[ ,]`, 'm').test(out);
      expect({ name: row.name, shown }).toEqual({ name: row.name, shown: row.group !== undefined });
    }
    expect(out).toContain('start, restart  Start stopped servers again\n');
  });

  test('shows headings in bold on a terminal that has it, and nowhere else', async () => {
    const skep = await bench();
    expect(await skep.output('', { terminal: { colorOut: true } })).toContain(
      '\u001B[1mRun servers\u001B[22m',
    );
    expect(await skep.output('')).not.toContain('\u001B');
  });
});

describe('help', () => {
  test.each(everyCommand)('of "%s" is data on stdout, and the same asked in every way', async (words) => {
    const skep = await bench();
    const help = await skep.run(`${words} --help`);
    expect(help).toMatchObject({ status: 0, err: '' });
    expect(help.out).toMatch(/^[A-Z].*[^.]\n/);
    expect(help.out).toContain('Usage: skep ');
    expect(help.out).toContain('--help');
    expect(await skep.run(`${words} -h`)).toEqual(help);
    if (!words.includes(' ')) expect(await skep.run(`help ${words}`)).toEqual(help);
  });

  test.each(families)('of the family "%s" lists its members', async (name) => {
    const skep = await bench();
    const help = await skep.run(name);
    for (const line of [`${name} --help`, `${name} -h`, `help ${name}`]) {
      expect(await skep.run(line)).toEqual(help);
    }
    const family = COMMANDS.find((row) => row.name === name);
    const members = family && 'members' in family ? family.members : [];
    for (const member of members)
      expect(help.out).toMatch(new RegExp(`^  ${namesOf(member).join(', ')} +\\S`, 'm'));
  });

  test.each([60, 80, 135])('stays within %d columns', async (width) => {
    const skep = await bench();
    for (const words of everyCommand) {
      const help = await skep.output(`${words} --help`, { terminal: { width } });
      const rows = help.split('\n').filter((line) => /^ {2,}-|^ {20,}/.test(line));
      // A flag that is itself wider than half of it has its text below.
      for (const row of rows)
        expect({ words, row, fits: row.length <= Math.max(width, 80) }).toMatchObject({ fits: true });
    }
  });

  test('is painted on a terminal that has colours, with the same words', async () => {
    const skep = await bench();
    const plain = await skep.output('run --help');
    const painted = await skep.output('run --help', { terminal: { colorOut: true } });
    expect(painted).not.toBe(plain);
    expect(stripVTControlCharacters(painted)).toBe(plain);
  });
});

describe('what is no command', () => {
  test.each([
    ['nope', 'unknown command "skep nope"; see skep --help'],
    ['lst', 'unknown command "skep lst"; did you mean "list"?'],
    ['strat', 'unknown command "skep strat"; did you mean "start"?'],
    ['supervis', 'unknown command "skep supervis"; see skep --help'],
    ['help nope', 'unknown command "skep nope"; see skep --help'],
    ['ps', 'unknown command "skep ps"; use skep list'],
    ['remove x', 'unknown command "skep remove"; use skep rm NAME'],
    [
      'inspect x',
      'unknown command "skep inspect"; use skep status NAME, or skep info SERVER for one of the catalogue',
    ],
    ['constructor', 'unknown command "skep constructor"; see skep --help'],
    ['registry nope', 'unknown command "skep registry nope"; see skep registry --help'],
    ['registry lits', 'unknown command "skep registry lits"; did you mean "list"?'],
    ['config fetch', 'unknown command "skep config fetch"; see skep config --help'],
    ['--nope', 'unknown flag "--nope"; flags come after the command: skep run --help'],
    ['-x run', 'unknown flag "-x"; flags come after the command: skep run --help'],
  ])('"skep %s" is refused', async (line, message) => {
    const skep = await bench();
    expect(await skep.refusal(line)).toBe(`Error: ${message}\n`);
  });
});

describe('an error', () => {
  test('is red on a terminal that has colours', async () => {
    const skep = await bench();
    expect((await skep.run('nope', { terminal: { colorErr: true } })).err).toBe(
      '\u001B[31mError:\u001B[39m unknown command "skep nope"\u001B[2m; see skep --help\u001B[22m\n',
    );
  });

  test.each([
    ['status missing --debug', {}],
    ['status missing', { SKEP_DEBUG: '1' }],
  ])('says what is behind it with "%s" and %j', async (line, env) => {
    const skep = await bench();
    const { status, err } = await skep.run(line, { env });
    expect(status).toBe(1);
    expect(err).toMatch(/^Error: workload "missing" not found; .*\n {2}code: workload\/not-found\n/);
  });

  test('repeats nothing that could steer the terminal', async () => {
    const skep = await bench();
    const { err } = await skep.run(['status', 'a\u001B[2Jb\u0007\nError: none']);
    expect(err.trimEnd().split('\n')).toHaveLength(1);
    expect(err).not.toContain('\u001B');
  });
});

describe('skep version', () => {
  test('says it for people and for scripts', async () => {
    const skep = await bench();
    for (const flag of ['--version', '-v', '-V']) expect(await skep.output(flag)).toBe('skep 1.0.0\n');
    expect(await skep.output('version')).toBe('skep 1.0.0\n');
    expect(JSON.parse(await skep.output('version --format json'))).toEqual({
      version: '1.0.0',
      platform: 'linux',
    });
  });
});
