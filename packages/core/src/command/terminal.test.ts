import { expect, test } from 'vitest';
import { openTerminal } from './terminal.ts';

const pipe = { write: () => true };
const screen = { ...pipe, isTTY: true, columns: 80 };

test('a person can be asked where standard input and standard error are terminals', () => {
  const interactive = (stdin: { isTTY?: boolean }, stderr: typeof pipe): boolean =>
    openTerminal({ stdin, stdout: pipe, stderr, env: {} }).interactive;
  expect(interactive({ isTTY: true }, screen)).toBe(true);
  expect(interactive({ isTTY: false }, screen)).toBe(false);
  expect(interactive({ isTTY: true }, pipe)).toBe(false);
});

test.each([
  [screen, 80],
  [{ ...pipe, isTTY: true, columns: 0 }, 100],
  [{ ...pipe, columns: 80 }, Infinity],
  [pipe, Infinity],
])('a table on %j has %d columns', (stdout, columns) => {
  expect(openTerminal({ stdin: {}, stdout, stderr: screen, env: {} }).widthOut).toBe(columns);
});

test('nothing is asked about standard input where no question could be shown', () => {
  const stdin = {
    get isTTY(): boolean {
      throw new Error('asking loads what talks to terminals');
    },
  };
  expect(openTerminal({ stdin, stdout: pipe, stderr: pipe, env: {} }).interactive).toBe(false);
});
