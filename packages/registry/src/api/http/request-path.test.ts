import { describe, expect, it } from 'vitest';
import { hasDotSegment } from './guard.ts';

describe('hasDotSegment', () => {
  it.each(['/a/../b', '/./a', '/a/%2e%2E/b', '/a/.%2e', '/%2e', '/a/..?x=1', '/.'])(
    'finds it in %s',
    (url) => {
      expect(hasDotSegment(url)).toBe(true);
    },
  );

  it.each(['/a.b/c', '/a/...', '/a/..b', '/.well-known/x', '/a?x=/../', '/%2e%2e%2e', '/a%2f..%2fb', '/'])(
    'finds none in %s',
    (url) => {
      expect(hasDotSegment(url)).toBe(false);
    },
  );
});
