import { describe, expect, test } from 'vitest';
import { bundleNameFault, namespaceFault, serverNameFault, splitName, versionFault } from './entry-name.ts';

describe('serverNameFault', () => {
  test.each(['io.acme/weather', 'a/b', 'weather', 'A.b-c/x_y.z-1', `io.acme/${'x'.repeat(192)}`])(
    'accepts %s',
    (name) => {
      expect(serverNameFault(name)).toBeUndefined();
    },
  );

  test.each([
    '',
    '/',
    'a/',
    '/a',
    'a/b/c',
    'a b/c',
    'io.acme/..',
    '../x',
    '.',
    '..',
    '-a/b',
    'a_b/c',
    'a/b\n',
    'a/%2e',
    `io.acme/${'x'.repeat(193)}`,
  ])('refuses %j', (name) => {
    expect(serverNameFault(name)).toEqual(expect.any(String));
  });
});

test.each([
  ['io.acme/weather', { namespace: 'io.acme', name: 'weather' }],
  ['weather', { name: 'weather' }],
])('splits %s', (name, parts) => {
  expect(splitName(name)).toEqual(parts);
});

test.each([
  ['a', true],
  ['pdf-tools', true],
  ['Pdf', false],
  ['-a', false],
  ['a-', false],
  ['x'.repeat(65), false],
])('bundle name %s: %s', (name, fine) => {
  expect(bundleNameFault(name) === undefined).toBe(fine);
});

test.each([
  ['io.acme', true],
  ['ab', false],
  ['io/acme', false],
  ['x'.repeat(129), false],
])('namespace %s: %s', (namespace, fine) => {
  expect(namespaceFault(namespace) === undefined).toBe(fine);
});

test.each([
  ['1.0.0', true],
  ['mcp', true],
  ['', false],
  ['latest', false],
  ['1 0', false],
  ['1\u0000', false],
  ['.', false],
  ['..', false],
  ['...', true],
  ['1\u00a0', false],
  ['\ufeff1', false],
  ['1\u2028', false],
  ['1\u0085', false],
  ['1\ud800', false],
  ['1🐝', true],
  ['x'.repeat(256), false],
])('version %j: %s', (version, fine) => {
  expect(versionFault(version) === undefined).toBe(fine);
});
