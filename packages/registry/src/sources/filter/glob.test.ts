import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { faultOf } from '../../shape/problem.ts';
import { compileGlob } from './glob.ts';

const globFault = (pattern: string): string | undefined => faultOf(() => compileGlob(pattern));

test.each([
  ['io.acme/weather', 'io.acme/weather', true],
  ['io.acme/weather', 'io.acme/weather2', false],
  ['io.acme/*', 'io.acme/weather', true],
  ['*', 'io.acme/weather', true],
  ['*weather', 'io.acme/deep/weather', true],
  ['io.*er', 'io.acme/weather', true],
  ['*/deprecated-*', 'io.acme/deprecated-', true],
  ['*/deprecated-*', 'io.acme/not-deprecated', false],
  ['io.acme/?', 'io.acme/w', true],
  ['io.acme/?', 'io.acme/', false],
  ['io.acme?weather', 'io.acme/weather', true],
  ['?', '🐝', true],
  ['[a-c]x', 'bx', true],
  ['[a-c]x', 'dx', false],
  ['[!a-c]x', 'dx', true],
  ['[^a-c]x', 'ax', false],
  ['[!a]', '', false],
  ['[a-]', '-', true],
  ['[\\]]', ']', true],
  ['[*?]', '*', true],
  ['[*?]', 'x', false],
  ['{io,com}.acme/*', 'com.acme/x', true],
  ['{io,com}.acme/*', 'net.acme/x', false],
  ['a{,b}', 'a', true],
  ['a{,b}', 'ab', true],
  ['{a,b{c,d*}}e', 'bdxye', true],
  ['{a,b{c,d*}}e', 'bxe', false],
  ['a,b', 'a,b', true],
  ['a]', 'a]', true],
  ['\\*', '*', true],
  ['\\*', 'x', false],
  ['\\{a\\}', '{a}', true],
  ['A', 'a', false],
])('%s on %s: %s', (pattern, name, matches) => {
  expect(compileGlob(pattern)(name)).toBe(matches);
});

test.each([
  ['', 'the pattern "" is empty'],
  ['a[', 'the pattern "a[" has a "[" without "]"'],
  ['[a\\', 'the pattern "[a\\" has a "[" without "]"'],
  ['[]', 'the pattern "[]" has an empty class "[]"'],
  ['[z-a]', 'the pattern "[z-a]" has a class with a reversed range'],
  ['{a', 'the pattern "{a" has a "{" without "}"'],
  ['{a,{b}', 'the pattern "{a,{b}" has a "{" without "}"'],
  ['a}', 'the pattern "a}" has a "}" without "{"'],
  ['a\\', 'the pattern "a\\" ends with a "\\"'],
])('%s is no pattern', (pattern, message) => {
  expect(globFault(pattern)).toBe(message);
  expect(() => compileGlob(pattern)).toThrow(expect.objectContaining({ code: 'config/invalid' }));
});

test('an overlong pattern is refused', () => {
  expect(globFault('a'.repeat(1_000))).toBeUndefined();
  expect(globFault('a'.repeat(1_001))).toMatch(/is longer than 1000 characters$/);
});

/** A pattern as a list of parts, with a matcher that is plainly right and slow: it tries every split of the name. */
type Glob =
  | { readonly star: true }
  | { readonly any: true }
  | { readonly char: string }
  | { readonly in: string; readonly not: boolean }
  | { readonly or: readonly (readonly Glob[])[] };

function written(globs: readonly Glob[]): string {
  return globs
    .map((glob) => {
      if ('star' in glob) return '*';
      if ('any' in glob) return '?';
      if ('char' in glob) return glob.char.replace(/[*?[\]{},\\]/g, String.raw`\$&`);
      if ('or' in glob) return `{${glob.or.map(written).join(',')}}`;
      return `[${glob.not ? '!' : ''}${glob.in}]`;
    })
    .join('');
}

function naive(globs: readonly Glob[], text: string): boolean {
  const [first, ...rest] = globs;
  if (first === undefined) return text === '';
  if ('star' in first) return naive(rest, text) || (text !== '' && naive(globs, text.slice(1)));
  if ('or' in first) return first.or.some((choice) => naive([...choice, ...rest], text));
  return text !== '' && admits(first, text.slice(0, 1)) && naive(rest, text.slice(1));
}

function admits(glob: Exclude<Glob, { star: true } | { or: unknown }>, char: string): boolean {
  if ('any' in glob) return true;
  return 'char' in glob ? glob.char === char : glob.in.includes(char) !== glob.not;
}

const one = fc.oneof(
  fc.constant<Glob>({ star: true }),
  fc.constant<Glob>({ any: true }),
  fc.constantFrom('a', 'b', '/', '*', '{', ',', '\\').map((char): Glob => ({ char })),
  fc.record({ in: fc.constantFrom('a', 'ab', 'b/'), not: fc.boolean() }),
);
const sequence = (part: fc.Arbitrary<Glob>): fc.Arbitrary<Glob[]> => fc.array(part, { maxLength: 5 });
const nested = fc.oneof(
  { weight: 5, arbitrary: one },
  { weight: 1, arbitrary: fc.record({ or: fc.array(sequence(one), { minLength: 1, maxLength: 3 }) }) },
);
const name = fc
  .array(fc.constantFrom('a', 'b', '/', '*', '{', ',', '\\'), { maxLength: 7 })
  .map((chars) => chars.join(''));

describe('any pattern', () => {
  test('means what trying every split of the name says', () => {
    fc.assert(
      fc.property(sequence(nested), name, (globs, text) => {
        fc.pre(globs.length > 0);
        expect(compileGlob(written(globs))(text)).toBe(naive(globs, text));
      }),
      { numRuns: 3_000 },
    );
  });

  test('either compiles or says in one sentence why not', () => {
    fc.assert(
      fc.property(
        fc.string({
          unit: fc.constantFrom('a', 'b', '-', '*', '?', '[', ']', '{', '}', ',', '\\', '!', '^', '/'),
        }),
        fc.string(),
        (pattern, text) => {
          const fault = globFault(pattern);
          if (fault === undefined) expect(typeof compileGlob(pattern)(text)).toBe('boolean');
          else expect(fault.startsWith(`the pattern "${pattern}" `)).toBe(true);
        },
      ),
      { numRuns: 1_000 },
    );
  });

  test.each([
    '*a'.repeat(200),
    `${'{a,*}'.repeat(100)}b`,
    `${'{*,*}'.repeat(100)}b`,
    '{'.repeat(300) + '*a' + '}'.repeat(300),
  ])('takes no more steps than pattern times name: %s', (pattern) => {
    // A matcher that backtracks needs longer than the age of the universe here.
    expect(compileGlob(pattern)(`${'a'.repeat(190)}c`)).toBe(false);
  });
});
