import { stripVTControlCharacters } from 'node:util';
import * as fc from 'fast-check';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import type { Terminal } from '@skep/core/command/terminal.ts';
import { openTerminal } from '@skep/core/command/terminal.ts';
import { openProgress } from './progress.ts';
import { toFacts, toTable, displayWidth, type Column } from './table.ts';

const ESCAPE = '\u001B';

function terminal(live: boolean): { readonly terminal: Terminal; readonly written: () => string } {
  let text = '';
  const opened = openTerminal({
    stdin: {},
    stdout: { write: () => true },
    stderr: { isTTY: live, write: (more) => ((text += more), true) },
    env: {},
  });
  return { terminal: opened, written: () => text };
}

describe('tables', () => {
  test('columns stand below each other with three spaces, without trailing ones', () => {
    expect(
      toTable(
        ['A', 'BB'],
        [
          ['long', 'x'],
          ['', 'y'],
        ],
      ),
    ).toBe('A      BB\nlong   x\n       y\n');
  });
  test('wide characters count as two', () => {
    const [first, second] = toTable(
      ['N', 'X'],
      [
        ['日本', '1'],
        ['abcd', '2'],
      ],
    )
      .split('\n')
      .slice(1);
    expect(first).toBe('日本   1');
    expect(second).toBe('abcd   2');
  });
  test.each([
    ['plain', 5],
    ['日本', 4],
    ['한글', 4],
    ['１', 2],
    ['é', 1],
    ['e\u0301', 1],
    ['👍', 2],
    ['…', 1],
  ])('%s takes %d columns', (text, columns) => {
    expect(displayWidth(text)).toBe(columns);
  });
  test('facts without a value are left out', () => {
    expect(
      toFacts([
        ['Name', 'x'],
        ['Health', undefined],
        ['A long one', 'y'],
      ]),
    ).toBe('Name:       x\nA long one: y\n');
  });
});

const onScreen = (widthOut: number, colorOut = false) => ({ widthOut, colorOut });

describe('on a terminal that is too narrow', () => {
  const columns: readonly Column[] = [
    { title: 'NAME' },
    { title: 'PACKAGE', least: 8, keepsEnd: true, optional: 1 },
    { title: 'ABOUT', least: 6 },
    { title: 'AGE', optional: 2 },
  ];
  const row = ['everything', '@example/server@1.2.3', 'says hello', '3d'];

  test.each([
    [
      60,
      'NAME         PACKAGE                 ABOUT        AGE\neverything   @example/server@1.2.3   says hello   3d\n',
    ],
    [
      50,
      'NAME         PACKAGE              ABOUT        AGE\neverything   …mple/server@1.2.3   says hello   3d\n',
    ],
    [36, 'NAME         PACKAGE    ABOUT    AGE\neverything   …r@1.2.3   says…    3d\n'],
    [30, 'NAME         ABOUT        AGE\neverything   says hello   3d\n'],
    [20, 'NAME         ABOUT\neverything   says h…\n'],
    [15, 'NAME     ABOUT\nevery…   says…\n'],
  ])('of %d columns, columns are cut, then left out, then all are cut', (width, text) => {
    expect(toTable(columns, [row], onScreen(width))).toBe(text);
  });

  test('what is to be copied is cut last', () => {
    const head: readonly Column[] = [
      { title: 'NAME', keepsEnd: true },
      { title: 'URL', whole: true },
    ];
    const names = [['a-long-name-of-a-server', 'http://127.0.0.1:4711/mcp']];
    expect(toTable(head, names, onScreen(40))).toContain('…of-a-server   http://127.0.0.1:4711/mcp\n');
    expect(toTable(head, names, onScreen(25))).toContain('…f-a-server   http://127…\n');
  });

  test('no line of a table is wider, no cell loses all of its text, and what stands below each other begins there', () => {
    const cell = fc.oneof(fc.string({ maxLength: 120 }), fc.string({ unit: 'grapheme', maxLength: 60 }));
    const column = fc.record(
      {
        title: fc.stringMatching(/^[A-Z]{1,12}$/),
        least: fc.integer({ min: 1, max: 40 }),
        keepsEnd: fc.constant(true as const),
        optional: fc.integer({ min: 1, max: 3 }),
        whole: fc.constant(true as const),
      },
      { requiredKeys: ['title'] },
    );
    const table = fc
      .array(column, { minLength: 1, maxLength: 7 })
      .chain((head) =>
        fc.tuple(
          fc.constant(head),
          fc.array(fc.array(cell, { minLength: head.length, maxLength: head.length })),
        ),
      );
    fc.assert(
      fc.property(table, fc.integer({ min: 60, max: 200 }), ([head, rows], width) => {
        // Between the columns, nothing else is a bar.
        const barred = rows.map((one) => one.map((text) => `|${text.replaceAll('|', '')}`));
        const titles = head.map((one) => ({ ...one, title: `|${one.title}` }));
        const lines = toTable(titles, barred, onScreen(width)).trimEnd().split('\n');
        const starts = lines.map((line) =>
          [...line.matchAll(/\|/gu)].map(({ index }) => displayWidth(line.slice(0, index))),
        );
        for (const line of lines) expect(displayWidth(line)).toBeLessThanOrEqual(width);
        // A cell that is cut at its start has its mark there.
        if (head.some(({ keepsEnd }) => keepsEnd)) return;
        for (const start of starts) expect(start).toEqual(starts[0]);
      }),
    );
  });

  test('nothing is cut where there is no terminal', () => {
    const long = 'x'.repeat(500);
    expect(toTable(columns, [[long, long, long, long]])).toContain(`${long}   ${long}   ${long}   ${long}\n`);
    expect(toFacts([['Name', `${long} ${long}`]])).toBe(`Name: ${long} ${long}\n`);
  });

  test('facts go on below themselves', () => {
    expect(toFacts([['Health', 'its proxy process is not running']], onScreen(34))).toBe(
      'Health: its proxy process is not\n        running\n',
    );
  });
});

test('colours change nothing but colours', () => {
  const head: readonly Column[] = [
    { title: 'A' },
    { title: 'B', format: (text) => (text === 'x' ? 'red' : undefined) },
  ];
  const rows = [
    ['1', 'x'],
    ['2', 'y'],
  ];
  const colored = toTable(head, rows, onScreen(80, true));
  expect(colored).toContain(`${ESCAPE}[31mx${ESCAPE}[39m\n`);
  expect(stripVTControlCharacters(colored)).toBe(toTable(head, rows, onScreen(80)));
  expect(toFacts([['Status', 'x', 'red']], onScreen(80, true))).toBe(`Status: ${ESCAPE}[31mx${ESCAPE}[39m\n`);
});

test('neither names nor values of a catalogue can steer the terminal', () => {
  const hostile = `a${ESCAPE}[2Jb\nc\u202Ed`;
  expect(toFacts([[`-e ${hostile}`, hostile]])).toBe('-e a\uFFFD[2Jb c\uFFFDd: a\uFFFD[2Jb c\uFFFDd\n');
  expect(toTable(['A'], [[hostile]])).toBe('A\na\uFFFD[2Jb c\uFFFDd\n');
});

describe('progress', () => {
  test('says how long a step takes from its second second on, on a terminal', () => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
    onTestFinished(() => void vi.useRealTimers());
    const { terminal: live, written } = terminal(true);
    const progress = openProgress(live);
    progress.step('Starting a1');
    vi.advanceTimersByTime(5_000);
    progress.step('Waiting for a1 to answer');
    vi.advanceTimersByTime(1_800);
    expect(written()).toContain('Starting a1 4 s');
    expect(written()).not.toMatch(/answer \d/);
    vi.advanceTimersByTime(1_400);
    progress.end();
    expect(stripVTControlCharacters(written())).toMatch(/Waiting for a1 to answer 2 s/);
    expect(written()).toContain('answer 3 s');
  });

  test('without a terminal is one plain line per step', () => {
    const { terminal: plain, written } = terminal(false);
    const progress = openProgress(plain);
    progress.step('Pulling');
    progress.detail('layer 1');
    progress.step('Pulling');
    progress.step('Starting');
    progress.end();
    expect(written()).toBe('Pulling\nStarting\n');
  });
  test('on a terminal leaves nothing behind', () => {
    const { terminal: live, written } = terminal(true);
    const progress = openProgress(live);
    progress.step('Pulling');
    progress.end();
    progress.end();
    expect(written().endsWith(`${ESCAPE}[0J`)).toBe(true);
  });
  test('its lines are no wider than the terminal, whatever characters they are of', () => {
    const { terminal: live, written } = terminal(true);
    const progress = openProgress(live);
    progress.step('包'.repeat(200));
    const [line = ''] = written().split(ESCAPE);
    expect(displayWidth(line)).toBeLessThan(live.width);
    progress.end();
  });
  test('a warning said behind its end has a line of its own, and the next step leaves it alone', () => {
    const { terminal: live, written } = terminal(true);
    const progress = openProgress(live);
    progress.step('Pulling');
    progress.end();
    live.err('Warning: no limits\n');
    progress.step('Starting');
    progress.end();
    const [before = '', behind = ''] = written().split('Warning: no limits\n');
    // Erased from the first column on, and not drawn again.
    expect(before.endsWith(`Pulling\r${ESCAPE}[0G${ESCAPE}[0J`)).toBe(true);
    // Nothing goes up or erases before the next line is drawn.
    expect(behind.indexOf('Starting')).toBeLessThan(behind.indexOf(ESCAPE));
  });
});

test.each([
  [{ isTTY: true }, {}, true],
  [{ isTTY: true }, { NO_COLOR: '1' }, false],
  [{ isTTY: true }, { TERM: 'dumb' }, false],
  [{}, {}, false],
])('colour on %j with %j: %s', (stream, env, color) => {
  const write = (): boolean => true;
  const opened = openTerminal({ stdin: {}, stdout: { ...stream, write }, stderr: { write }, env });
  expect(opened.colorOut).toBe(color);
});
