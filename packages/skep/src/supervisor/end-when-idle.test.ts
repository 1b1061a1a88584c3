import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { places } from '@skep/core/files/places.ts';
import { expect, test } from 'vitest';
import type { ServerOptions } from './server.ts';
import { testServer } from './server.fixture.ts';

test('a supervisor without work looks once more for what a command has left before it ends', async () => {
  const home = await mkdtemp(join(tmpdir(), 'skep-idle-'));
  const done = Promise.resolve();
  const busyWith: string[] = [];
  let looks = 0;
  const again = async (): Promise<void> => {
    looks += 1;
    // The first time something is left, which is over by the next.
    if (looks === 1) busyWith.push('a1');
    if (looks === 1) setImmediate(() => busyWith.pop());
  };
  const { over } = await testServer({
    places: places({ env: {}, home, platform: 'linux', temp: home }),
    host: { busyWith } as unknown as ServerOptions['host'],
    resume: {
      settled: done,
      complete: done,
      again,
      finish() {},
      isBusy: () => false,
      hasLeft: async () => false,
    },
    lingerMs: 20,
    signal: new AbortController().signal,
  });
  await over;
  expect(looks).toBe(2);
  await rm(home, { recursive: true });
});
