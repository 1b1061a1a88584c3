import { expect, test } from 'vitest';
import { decodeRunConfig } from './run-config.ts';
import { requestTimeoutMs, withRequestTimeout } from './request-timeout.ts';

const plain = { name: 'ab', image: 'x/y', transport: 'stdio' };

test.each([
  [undefined, 60_000],
  [2_000, 2_000],
  [90 * 60_000, 90 * 60_000],
])('a time limit of %s is kept with the workload', (given, used) => {
  const saved = decodeRunConfig({ ...plain, ...withRequestTimeout(given) }, 'f');
  expect(requestTimeoutMs(saved)).toBe(used);
});

test.each(['2', '0s', '-1s', 'soon', '1000h', 5])('a saved time limit of %j is refused by name', (value) => {
  expect(() => decodeRunConfig({ ...plain, request_timeout: value }, 'f')).toThrow(
    expect.objectContaining({
      code: 'run/invalid-config',
      message: expect.stringContaining('"request_timeout"'),
    }),
  );
});
