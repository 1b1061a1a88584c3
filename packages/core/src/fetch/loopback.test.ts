import { expect, test } from 'vitest';
import { isLoopback } from './loopback.ts';

test.each(['localhost', '127.0.0.1', '127.9.9.9', '::1', '[::1]'])('%s is this machine', (host) => {
  expect(isLoopback(host)).toBe(true);
});

test.each([
  '',
  'db',
  'localhost.example',
  '127.example',
  '127.1',
  '10.0.0.7',
  '0.0.0.0',
  '::',
  '2001:db8::1',
])('%j is not this machine alone, or not in a spelling that is judged', (host) => {
  expect(isLoopback(host)).toBe(false);
});
