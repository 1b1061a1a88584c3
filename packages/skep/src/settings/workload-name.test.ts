import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { anyText } from '@skep/core/json/any-text.fixture.ts';
import {
  checkWorkloadName,
  isWorkloadName,
  nameOfEntry,
  nameOfHost,
  nameOfImage,
  nameOfPackage,
  toWorkloadName,
} from './workload-name.ts';

describe('names a person writes', () => {
  test.each(['everything', 'a1', 'my-server.v2', 'A_b'])('accepts %s', (name) => {
    expect(checkWorkloadName(name)).toBe(name);
  });
  test.each(['', 'a', 'a b', '../x', 'a;b', '-x', '.x', 'a..b', 'x'.repeat(101), 'a/b', 'a\0b', 'ü1'])(
    'refuses %j',
    (name) => {
      expect(() => checkWorkloadName(name)).toThrow(expect.objectContaining({ code: 'run/invalid-name' }));
    },
  );
});

describe('names Skep generates', () => {
  test.each([
    ['npx://@org/x', 'org-x'],
    [
      'npx://@modelcontextprotocol/server-everything@2026.8.31',
      'modelcontextprotocol-server-everything-2026-8-31',
    ],
    ['go://github.com/u/r@v1.0.0', 'github-com-u-r-v1-0-0'],
    ['go://./my.project', 'my-project'],
    ['go://../my.project', 'my-project'],
    ['go://./cmd/server', 'cmd-server'],
    ['go://.', 'skep-container'],
    ['go://..', 'skep-container'],
    ['uvx://mcp-server-git@2025.1.14', 'mcp-server-git-2025-1-14'],
    ['uvx://pkg[extra]', 'pkg-extra'],
  ])('%s → %s', (reference, name) => {
    expect(nameOfPackage(reference)).toBe(name);
  });
  test.each([
    ['nginx:latest', 'nginx'],
    ['docker.io/library/nginx', 'library-nginx'],
    ['localhost:5000/image:latest', 'localhost-image'],
    ['foo/bar@sha256:abcdef', 'foo-bar-sha256'],
    ['a/b/c/d:foo', 'c-d'],
    ['my$image', 'my-image'],
  ])('%s → %s', (reference, name) => {
    expect(nameOfImage(reference)).toBe(name);
  });
  test.each([
    ['https://api.github.com/mcp', 'github'],
    ['https://github.com', 'github'],
    ['http://localhost:8080/mcp', 'localhost'],
    ['http://127.0.0.1:8080/', '127-0-0-1'],
    ['http://[::1]/', 'workload-1'],
  ])('%s → %s', (address, name) => {
    expect(nameOfHost(new URL(address))).toBe(name);
  });
  test('a catalogue name loses its dots and slashes', () => {
    expect(nameOfEntry('io.github.x/y')).toBe('io-github-x-y');
  });
  test.each([
    ['../test', 'test'],
    ['/etc/passwd', 'etc-passwd'],
    ['test workload', 'test-workload'],
    ['test; rm -rf /', 'test-rm--rf'],
    ['a\0b', 'a-b'],
    ['a..b', 'a-b'],
    ['x'.repeat(150), 'x'.repeat(100)],
    ['a', 'workload-a'],
    ['', 'workload'],
  ])('%j → %s', (text, name) => {
    expect(toWorkloadName(text)).toBe(name);
  });
  test('any text becomes a valid name', () => {
    fc.assert(fc.property(anyText(), (text) => isWorkloadName(toWorkloadName(text))));
  });
  test('a valid name without a trailing mark stays as it is', () => {
    expect(toWorkloadName('my-server.v2')).toBe('my-server.v2');
  });
});
