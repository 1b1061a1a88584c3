import { silentLog } from '@skep/core/log/log.ts';
import { manualClock } from '@skep/core/time/doubles/manual-clock.ts';
import { systemClock } from '@skep/core/time/clock.ts';
import { beforeEach, expect, test } from 'vitest';
import { MemoryRuntime } from '../runtime/doubles/memory-runtime.ts';
import type { Runtime } from '../runtime/runtime.ts';
import { Spares } from '../runtime/spares.ts';
import { MadeAhead } from './made-ahead.ts';

let isHosting: boolean;
let later: PromiseWithResolvers<void>;
let made: string[];
let failures: object[];

beforeEach(() => {
  isHosting = true;
  later = Promise.withResolvers();
  made = [];
  failures = [];
});

function madeAhead(): MadeAhead {
  const clock = {
    ...systemClock,
    sleep: (_ms: number, signal?: AbortSignal) =>
      Promise.race([
        later.promise,
        new Promise<never>((_, reject) => signal?.addEventListener('abort', () => reject(signal.reason))),
      ]),
  };
  const log = { ...silentLog, debug: (fields: object) => void failures.push(fields) };
  return new MadeAhead({ spares: new Spares(), clock, log }, () => isHosting);
}

function runtime(more: Partial<Runtime>): Runtime {
  return Object.assign(new MemoryRuntime({}), more);
}

/** All that waits for nothing else has happened. */
const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

test('what is for this process alone is made while something is hosted, what others may use in any case', async () => {
  const on = runtime({
    makeSpare: async () => void made.push('spare'),
    keepReady: async (reference) => void made.push(reference),
  });
  const ahead = madeAhead();
  ahead.begin({ runtime: on, reference: 'one' });
  await settled();
  expect(made).toEqual([]);
  later.resolve();
  await settled();
  isHosting = false;
  ahead.begin({ runtime: on, reference: 'two' });
  await settled();
  expect(made).toEqual(['spare', 'one', 'two']);
});

test('what outlives the process is waited for by whoever has removed what it is made from, and at the end', async () => {
  const { promise, resolve } = Promise.withResolvers<void>();
  const ahead = madeAhead();
  later.resolve();
  await ahead.kept('one');
  ahead.begin({ runtime: runtime({ keepReady: () => promise }), reference: 'one' });
  await settled();
  await ahead.kept('another');
  const order: string[] = [];
  const kept = ahead.kept('one').then(() => order.push('kept'));
  const closed = ahead.close().then(() => order.push('closed'));
  await settled();
  expect(order).toEqual([]);
  resolve();
  await Promise.all([kept, closed]);
  expect(order).toEqual(['kept', 'closed']);
});

test('one that fails is logged, and keeps nothing else from being made', async () => {
  const on = runtime({
    makeSpare: () => Promise.reject(new Error('no network')),
    keepReady: async (reference) => void made.push(reference),
  });
  later.resolve();
  madeAhead().begin({ runtime: on, reference: 'one' });
  await settled();
  expect(made).toEqual(['one']);
  expect(failures).toMatchObject([{ err: { message: 'no network' } }]);
});

test('nothing is made, nor complained of, when the process ends', async () => {
  const ahead = madeAhead();
  ahead.begin({ runtime: runtime({ keepReady: async (one) => void made.push(one) }), reference: 'one' });
  ahead.end();
  later.resolve();
  await settled();
  await ahead.close();
  expect([made, failures]).toEqual([[], []]);
});

test('what may be left is looked for again, once for all reasons, as long as something is hosted', async () => {
  const clock = manualClock();
  const spares = new Spares();
  const ahead = new MadeAhead({ spares, clock, log: silentLog }, () => isHosting);
  const on = runtime({ makeSpare: async () => void made.push('spare') });
  ahead.begin({ runtime: on, reference: 'one' });
  await settled();
  expect(made).toEqual(['spare']);
  spares.lookAgain();
  spares.lookAgain();
  clock.pass(14_999);
  await settled();
  expect(made).toEqual(['spare']);
  clock.pass(1);
  await settled();
  expect(made).toEqual(['spare', 'spare']);
  expect(clock.waiting).toBe(0);
  // What fails again and again is tried after ever longer.
  const waits = Array.from({ length: 8 }, () => {
    spares.lookAgain();
    const wait = clock.nextIn ?? 0;
    clock.pass(wait);
    return wait / 1_000;
  });
  expect(waits).toEqual([30, 60, 120, 240, 480, 600, 600, 600]);
  await settled();
  made.splice(2);
  ahead.begin({ runtime: on, reference: 'one' });
  await settled();
  made.splice(2);
  spares.lookAgain();
  expect(clock.nextIn).toBe(15_000);
  isHosting = false;
  clock.pass(60_000);
  await settled();
  expect(made).toHaveLength(2);
  spares.lookAgain();
  await ahead.close();
  spares.lookAgain();
  expect(clock.waiting).toBe(0);
});
