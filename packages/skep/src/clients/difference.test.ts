import { expect, test } from 'vitest';
import { differenceOf } from './difference.ts';

const shown = (before: string, after: string): readonly string[] =>
  differenceOf(before, after).map(({ mark, text }) => `${mark} ${text}`);

const ONE = '{\n  "s": {\n    "a": { "TOKEN": "hush" } // mine\n  }\n}\n';
const TWO =
  '{\n  "s": {\n    "a": { "TOKEN": "hush" }, // mine\n    "b": {\n      "url": "u"\n    }\n  }\n}\n';

test('shows what comes, goes or changes, and no neighbour', () => {
  expect(shown(ONE, TWO)).toEqual(['@ line 4', '+     "b": {', '+       "url": "u"', '+     }']);
  expect(shown(TWO, ONE)).toEqual(['@ line 4', '-     "b": {', '-       "url": "u"', '-     }']);
  expect(shown(TWO, TWO.replace('"u"', '"v"'))).toEqual([
    '@ line 5',
    '-       "url": "u"',
    '+       "url": "v"',
  ]);
  expect(shown(ONE, ONE)).toEqual([]);
});

test('shows a whole file that comes or goes', () => {
  expect(shown('', 'a\nb\n')).toEqual(['@ line 1', '+ a', '+ b']);
  expect(shown('a\r\nb\r\n', '')).toEqual(['@ line 1', '- a', '- b']);
});

test('of a file in one line, shows what is new', () => {
  const before = '{"s":{"a":{"TOKEN":"hush"}},"inputs":[]}';
  const after = '{"s":{"a":{"TOKEN":"hush"},"b":{"url":"u"}},"inputs":[]}';
  const added = shown(before, after).join('\n');
  expect(added).toContain('"b":{"url":"u"');
  expect(added + shown(after, before).join('\n')).not.toContain('hush');
});

test.each([1, 3_000])('of changes in one line, shows nothing of %d parts between them', (parts) => {
  const x = `"x":{"env":{${'"TOKEN":"hush",'.repeat(parts)}"TOKEN":"hush"}}`;
  const before = `{"s":{"a":{"url":"http://127.0.0.1:1/mcp"},${x}}}`;
  const after = `{"s":{"a":{"url":"http://127.0.0.1:22/mcp"},${x},"b":{"url":"u"}}}`;
  for (const lines of [shown(before, after), shown(after, before)]) {
    expect(lines.join('\n')).toContain('"b":{"url":"u"');
    expect(lines.join('\n')).not.toContain('hush');
  }
});

test('of two changes in a text too long to compare, shows nothing of what stands between them', () => {
  const between = Array.from({ length: 2_500 }, (_, n) => `  "TOKEN_${n}": "hush",`).join('\n');
  expect(shown(`one\n${between}\nend`, `two\n${between}\nlast\nend`)).toEqual([
    '@ line 1',
    '- one',
    '+ two',
    '+ last',
  ]);
});

test('two changes far from each other are two blocks', () => {
  const lines = Array.from({ length: 50 }, (_, n) => `line ${n}`);
  const after = ['first', ...lines.slice(0, 40), ...lines.slice(41)];
  expect(shown(lines.join('\n'), after.join('\n'))).toEqual([
    '@ line 1',
    '+ first',
    '@ line 42',
    '- line 40',
  ]);
});

test('long texts without anything in common are shown as they are', () => {
  const [before, after] = ['a', 'b'].map((one) =>
    Array.from({ length: 2_500 }, (_, n) => `${one}${n}`).join('\n'),
  );
  expect(shown(before ?? '', after ?? '')).toHaveLength(5_001);
});
