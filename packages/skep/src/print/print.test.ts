import { describe, expect, test } from 'vitest';
import type { Terminal } from '@skep/core/command/terminal.ts';
import { openTerminal } from '@skep/core/command/terminal.ts';
import { openProgress } from './progress.ts';
import { toFacts, toTable, displayWidth } from './table.ts';

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

test('neither names nor values of a catalogue can steer the terminal', () => {
  const hostile = `a${ESCAPE}[2Jb\nc\u202Ed`;
  expect(toFacts([[`-e ${hostile}`, hostile]])).toBe('-e a\uFFFD[2Jb c\uFFFDd: a\uFFFD[2Jb c\uFFFDd\n');
  expect(toTable(['A'], [[hostile]])).toBe('A\na\uFFFD[2Jb c\uFFFDd\n');
});

describe('progress', () => {
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
