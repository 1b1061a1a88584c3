import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { parseTarget } from './parse-target.ts';

describe('what the argument of run means', () => {
  test.each([
    ['npx://@scope/name@1.2.3', 'package'],
    ['uvx://mcp-server-time', 'package'],
    ['https://example.com/mcp', 'remote'],
    ['everything', 'name'],
    ['io.github.x/y', 'name'],
  ])('%s is a %s', (text, kind) => {
    expect(parseTarget(text).kind).toBe(kind);
  });
  test.each([
    ['github', false],
    ['ghcr.io/github/github-mcp-server', true],
    ['nginx:1', true],
    ['x@sha256:abc', true],
    ['a b', undefined],
    ['$(x)/y', false],
    ['-v/x', false],
  ])('%s may be an image: %s', (text, mayBeImage) => {
    if (mayBeImage === undefined) {
      expect(() => parseTarget(text)).toThrow(expect.objectContaining({ code: 'target/invalid' }));
    } else {
      expect(parseTarget(text)).toMatchObject({ kind: 'name', mayBeImage });
    }
  });
  test.each([
    ['ftp://x', 'target/invalid'],
    ['http://', 'target/invalid'],
    // Not the host x.
    ['https:///x', 'target/invalid'],
    ['http://\\x', 'target/invalid'],
    ['https://?x', 'target/invalid'],
    ['npx://; rm -rf /', 'target/invalid-package'],
    ['', 'usage/missing-argument'],
    ['a\nb', 'target/invalid'],
    ['go://./server', 'usage/not-available'],
    ['go://../server', 'usage/not-available'],
    ['go://.', 'usage/not-available'],
    ['go:///srv/server', 'usage/not-available'],
  ])('%j is refused', (text, code) => {
    expect(() => parseTarget(text)).toThrow(expect.objectContaining({ code }));
  });
  test('any text is classified or refused with a code', () => {
    fc.assert(
      fc.property(fc.string(), (text) => {
        try {
          parseTarget(text);
        } catch (error) {
          expect(error).toHaveProperty('code');
        }
      }),
    );
  });
});
