import { describe, expect, test } from 'vitest';
import { hasDotSegment } from './guard.ts';

describe('hasDotSegment', () => {
  test.each(['/a/../b', '/./a', '/a/%2e%2E/b', '/a/.%2e', '/%2e', '/a/..?x=1', '/.'])(
    'finds it in %s',
    (url) => {
      expect(hasDotSegment(url)).toBe(true);
    },
  );

  test.each(['/a.b/c', '/a/...', '/a/..b', '/.well-known/x', '/a?x=/../', '/%2e%2e%2e', '/a%2f..%2fb', '/'])(
    'finds none in %s',
    (url) => {
      expect(hasDotSegment(url)).toBe(false);
    },
  );
});
