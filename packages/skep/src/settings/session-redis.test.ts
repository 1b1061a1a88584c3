import { expect, test } from 'vitest';
import { isKeyPrefix, redisAddress } from './session-redis.ts';

test.each([
  ['redis:6379', 'redis://redis:6379', undefined],
  ['127.0.0.1:1', 'redis://127.0.0.1:1', undefined],
  ['redis://skep@r.example:6380/3', 'redis://skep@r.example:6380', 3],
  ['rediss://r.example', 'rediss://r.example', undefined],
  ['rediss://[::1]:1/0', 'rediss://[::1]:1', 0],
])('%s is where a Redis is', (text, address, database) => {
  expect(redisAddress(text)).toEqual({ address, database });
});

test.each([
  '', 'redis', 'http://r.example', 'redis://', 'redis://:hush@r.example', 'redis://a:hush@r.example/1', 'redis://r.example/x',
  'redis://r.example/99999', 'redis://r.example/1?a=b', 'redis://r.example/#a', 'unix:/run/redis.sock',
])('%s is no address of a Redis, or holds what no address may', (text) => {
  expect(redisAddress(text)).toBeUndefined();
}); // prettier-ignore

test('keys begin with at most 128 visible characters', () => {
  expect(['', 'skep:', 'a'.repeat(128)].map(isKeyPrefix)).toEqual([true, true, true]);
  expect(['a b', 'a\n', 'é', 'a'.repeat(129)].map(isKeyPrefix)).toEqual([false, false, false, false]);
});
