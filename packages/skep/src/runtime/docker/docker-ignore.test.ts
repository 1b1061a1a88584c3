import { expect, test } from 'vitest';
import { leftOutBy } from './docker-ignore.ts';

test.each([
  ['secrets', 'secrets', true],
  ['secrets', 'secrets/key', true],
  ['secrets', 'sub/secrets', false],
  ['/secrets', 'secrets/key', true],
  ['./secrets/', 'secrets', true],
  ['**/secrets', 'sub/deep/secrets', true],
  ['**/secrets', 'secrets', true],
  ['*.env', '.env', true],
  ['*.env', 'sub/.env', false],
  ['**/*.env', 'sub/prod.env', true],
  ['a?c', 'abc', true],
  ['a?c', 'a/c', false],
  ['sub/**', 'sub/x/y', true],
  ['#secrets', 'secrets', false],
  ['  secrets  ', 'secrets', true],
  ['secrets\r\nx', 'secrets', true],
  ['*\n!keep', 'keep', false],
  ['*\n!keep', 'other', true],
  ['!keep\n*', 'keep', true],
  ['sub\n!sub/keep', 'sub/keep', false],
  ['sub\n!sub/keep', 'sub/other', true],
  ['a+b(c)', 'a+b(c)', true],
  ['x/../secrets', 'secrets', true],
  ['', 'x', false],
  ['.', 'x', false],
])('%j leaves %s out: %s', (text, name, isOut) => {
  expect(leftOutBy(text)(name, false)).toBe(isOut);
});

test('a directory is looked into where an exception may lie below it', () => {
  expect(leftOutBy('sub')('sub', true)).toBe(true);
  expect(leftOutBy('sub\n!sub/keep')('sub', true)).toBe(false);
});
