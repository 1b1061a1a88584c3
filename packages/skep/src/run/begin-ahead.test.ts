import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { places } from '@skep/core/files/places.ts';
import { systemClock } from '@skep/core/time/clock.ts';
import { expect, test, vi } from 'vitest';
import type { Context } from '../cli/context.ts';
import { decodeRunConfig } from '../run-config/run-config.ts';
import { MemoryRuntime } from '../runtime/doubles/memory-runtime.ts';
import { readStatus } from '../supervisor/state.ts';
import { beginAhead } from './begin-ahead.ts';

test('what a command begins is left to be removed at once when somebody ends that, however long an engine takes', async () => {
  const home = await mkdtemp(join(tmpdir(), 'skep-begin-'));
  const where = places({ env: {}, home, platform: 'linux', temp: home });
  const ending = new AbortController();
  const runtime = new MemoryRuntime();
  let asked = false;
  runtime.create = () => {
    asked = true;
    return new Promise(() => {});
  };
  const context = {
    places: where,
    clock: systemClock,
    random: (min: number) => min,
    self: { pid: process.pid, started: 'me' },
    signal: ending.signal,
    woken: {},
  } as unknown as Context;
  const config = decodeRunConfig({ name: 'a1', image: 'fake:1', transport: 'stdio', port: 4001 }, 'test');
  void beginAhead(config, { runtime, secrets: {}, context });
  await vi.waitFor(() => expect(asked).toBe(true));
  expect(await readStatus(where, 'a1')).toMatchObject({ status: 'starting', process_id: process.pid });
  ending.abort();
  await vi.waitFor(async () =>
    expect(await readStatus(where, 'a1')).toMatchObject({ status: 'removing', process_id: 0 }),
  );
  await rm(home, { recursive: true });
});
