import { manualClock } from '@skep/core/time/doubles/manual-clock.ts';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { silentLog } from '@skep/core/log/log.ts';
import { expect, test, vi } from 'vitest';
import { decodeRunConfig } from '../run-config/run-config.ts';
import { MemoryRuntime } from '../runtime/doubles/memory-runtime.ts';
import { launch } from './launch.ts';
import type { StatusWord } from './state.ts';
import { planRestart, RESTART, watch } from './watch.ts';

const config = decodeRunConfig(
  { name: 'a1', image: 'fake:1', transport: 'stdio', host: '127.0.0.1', port: 4001 },
  'test',
);

interface Faults {
  /** What the proxy does when the server has ended. */
  readonly backendEnded?: () => void;
  /** What writing a status does first. */
  readonly write?: (status: StatusWord) => void;
}

/** A watched workload; `over` resolves when nobody watches it any more, and ending it is up to the test. */
async function watched({ backendEnded = () => {}, write = () => {} }: Faults) {
  const runtime = new MemoryRuntime();
  const [random, owner] = [(min: number) => min, 'me'];
  const secrets = async () => ({});
  const overlays = async () => [];
  await launch(config, { runtime, owner, random, secrets, overlays });
  const ending = new AbortController();
  const statuses: StatusWord[] = [];
  const again = Promise.withResolvers<void>();
  const restarted = vi.fn();
  const over = watch(config, {
    runtime,
    owner,
    random,
    secrets,
    overlays,
    status: {
      async set(status) {
        write(status);
        statuses.push(status);
      },
    },
    clock: manualClock(),
    log: silentLog,
    proxy: {
      url: 'http://127.0.0.1:4001/mcp',
      port: 4001,
      behind: () => () => {},
      backendEnded,
      backendStarted: () => again.resolve(),
      close: async () => {},
    },
    hostPort: undefined,
    restarted,
    signal: ending.signal,
  });
  return { restarted, runtime, statuses, again: again.promise, over, end: () => ending.abort() };
}

test('what is made ahead hears of a restart, once it has succeeded', async () => {
  const { runtime, restarted, again, end } = await watched({});
  runtime.end('a1', 1);
  await again;
  await vi.waitFor(() => expect(restarted).toHaveBeenCalledOnce());
  expect(runtime.startsOf('a1')).toBe(2);
  end();
});

test('a proxy that cannot let go of a server that ended does not keep it from being started again', async () => {
  const { runtime, again, over, end } = await watched({
    backendEnded() {
      throw new TypeError('a fault of the proxy');
    },
  });
  runtime.end('a1', 1);
  await Promise.race([again, over]);
  expect(runtime.startsOf('a1')).toBe(2);
  end();
  await over;
});

test('a fault while a workload is watched is told in its status and ends nothing else', async () => {
  const { runtime, statuses, over } = await watched({
    write(status) {
      if (status === 'starting') throw new TypeError('a fault of the supervisor');
    },
  });
  runtime.end('a1', 1);
  await over;
  expect(statuses).toEqual(['error']);
});

test('a server that ends while the disk is full is started again', async () => {
  const { runtime, statuses, again, over, end } = await watched({
    write(status) {
      if (statuses.length === 0 && status === 'starting') throw new SkepError('file/write-failed');
    },
  });
  runtime.end('a1', 1);
  await Promise.race([again, over]);
  expect(runtime.startsOf('a1')).toBe(2);
  end();
  await over;
});

test('a workload whose status cannot be written any more does not end the supervisor', async () => {
  const { runtime, statuses, over } = await watched({
    write() {
      throw new TypeError('no space left on the device');
    },
  });
  runtime.end('a1', 1);
  await over;
  expect(statuses).toEqual([]);
});

function delaysOf(runs: readonly number[]): (number | undefined)[] {
  let attempts = 0;
  return runs.map((ranMs) => {
    const plan = planRestart(attempts, ranMs);
    if (plan) ({ attempts } = plan);
    return plan?.delayMs;
  });
}

test('the delay doubles from 5 s to 60 s, and the tenth attempt is the last', () => {
  const delays = delaysOf(Array.from({ length: 11 }, () => 100));
  expect(delays.slice(0, 5)).toEqual([5_000, 10_000, 20_000, 40_000, 60_000]);
  expect(delays[9]).toBe(60_000);
  expect(delays[10]).toBeUndefined();
});

test('a run of 30 s begins anew', () => {
  expect(delaysOf([1, 1, RESTART.stableAfterMs, 1])).toEqual([5_000, 10_000, 5_000, 10_000]);
});
