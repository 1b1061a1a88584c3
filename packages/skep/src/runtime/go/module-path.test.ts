import { expect, test } from 'vitest';
import { escapedPath, isNamedBy, moduleCandidates, unescapedPath } from './module-path.ts';

test('upper-case letters are written so that no file system confuses them', () => {
  expect(escapedPath('github.com/Azure/go-SDK')).toBe('github.com/!azure/go-!s!d!k');
  expect(unescapedPath('github.com/!azure/go-!s!d!k')).toBe('github.com/Azure/go-SDK');
});

test('a package may be in a module of its own path or of any above', () => {
  expect(moduleCandidates('h.test/a/b')).toEqual(['h.test/a/b', 'h.test/a', 'h.test']);
});

test.each([
  ['h.test', 'h.test/a', true],
  ['h.test/a', 'h.test/a/b/c', true],
  ['h.test/a', 'h.test/ab', false],
  ['*.h.test', 'git.h.test/a', true],
  ['*.h.test', 'h.test/a', false],
  ['h.test/*/x', 'h.test/team/x/cmd', true],
  ['h.test/*', 'h.test', false],
  ['other,h.test/', 'h.test/a', true],
  ['h[12].test', 'h2.test/a', true],
  ['[', '[', false],
  ['', 'h.test', false],
])('the pattern %j names %j: %s', (patterns, path, named) => {
  expect(isNamedBy(patterns, path)).toBe(named);
});
