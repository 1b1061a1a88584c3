import { expect, test } from 'vitest';
import { shownRows as rows } from './shown-rows.fixture.ts';
import { toHelp, wrapText } from './to-help.ts';

const page = {
  usage: 'skep x [flags]',
  summary: 'Does x',
  description: ['A paragraph.'],
  examples: [{ command: 'skep x -f', what: 'stays' }],
  rows,
};

test('a help page shows everything the table says, aligned', () => {
  expect(toHelp(page, { width: 100, color: false })).toBe(`Does x

Usage: skep x [flags]

A paragraph.

Examples:
  skep x -f
      stays

One:
  -e, --env KEY=VALUE  A variable
      --wait duration  How long to wait (default: 30s)

Two:
  -f, --foreground     Stay
      --token string   Token (env: X_TOKEN; secret; later)
      --mode a|b       Mode (later: b)

Environment variables:
  X_RUNTIME  Runtime (docker, sandbox)

"later": arrives with a coming release and is refused until then.
`);
});

test.each([40, 60, 80, 120])('no line is wider than %d columns unless a word is', (width) => {
  for (const line of toHelp(page, { width, color: false }).split('\n')) {
    expect(line.length).toBeLessThanOrEqual(Math.max(width, 46));
  }
});

test('colour marks headings and dims what is not available', () => {
  const text = toHelp(page, { width: 100, color: true });
  expect(text).toContain('\u001B[1mOne:\u001B[22m');
  expect(text).toContain('\u001B[2m      --token string');
  expect(toHelp(page, { width: 100, color: false })).not.toContain('\u001B');
});

test.each([
  ['a b c', 3, ['a b', 'c']],
  ['toolong b', 3, ['toolong', 'b']],
  ['', 3, []],
])('wraps %j at %d', (text, width, lines) => {
  expect(wrapText(text, width)).toEqual(lines);
});
