import { silentLog } from '@skep/core/log/log.ts';
import { manualClock } from '@skep/core/time/doubles/manual-clock.ts';
import { expect, test } from 'vitest';
import type { Condition } from '../backend.ts';
import { ServerHealth } from './server-health.ts';

const SETTINGS = {
  healthIntervalMs: 10_000,
  healthTimeoutMs: 5_000,
  healthRetryMs: 5_000,
  healthThreshold: 5,
};

/** A server that answers looks with the status, or not at all. */
function lookedAfter(isRemote = true) {
  const server = { status: 200 as number | undefined, looks: 0 };
  const told: Condition[] = [];
  const clock = manualClock();
  const health = new ServerHealth({
    ...SETTINGS,
    probe: async (signal) => {
      server.looks += 1;
      if (server.status !== undefined) return server.status;
      return new Promise((_resolve, reject) =>
        signal.addEventListener('abort', () => reject(new Error('late'))),
      );
    },
    isRemote,
    tell: (condition) => void told.push(condition),
    clock,
    log: silentLog,
  });
  /** Lets the time of one look pass, and what it brings. */
  const pass = async (milliseconds: number): Promise<void> => {
    clock.pass(milliseconds);
    await new Promise((resolve) => setImmediate(resolve));
  };
  return { server, told, clock, health, pass };
}

test('nothing is looked at before the first success', async () => {
  const { server, health, pass } = lookedAfter();
  await pass(60_000);
  health.answered(401);
  await pass(60_000);
  expect(server.looks).toBe(0);
  health.answered(200);
  await pass(10_000);
  expect(server.looks).toBe(1);
});

test.each([[503], [undefined]])(
  'five failures in a row are told, and one success ends that: %s',
  async (status) => {
    const { server, told, health, pass } = lookedAfter();
    health.answered(200);
    server.status = status;
    await pass(10_000);
    for (let looks = 1; looks < 5; looks += 1) {
      expect(told).toEqual([]);
      if (status === undefined) await pass(5_000);
      await pass(5_000);
    }
    if (status === undefined) await pass(5_000);
    expect([told, server.looks]).toEqual([['failing'], 5]);
    expect(health.seen?.error).toBeDefined();
    server.status = 404;
    await pass(5_000);
    expect(told).toEqual(['failing', 'fine']);
    await pass(10_000);
    expect(server.looks).toBe(7);
  },
);

test('an answer to a client ends it as well, and a sleep of the machine begins the count anew', async () => {
  const { server, told, clock, health, pass } = lookedAfter();
  health.answered(200);
  server.status = 500;
  await pass(10_000);
  for (let looks = 1; looks < 4; looks += 1) await pass(5_000);
  clock.set(3_600_000);
  await pass(5_000);
  expect(told).toEqual([]);
  for (let looks = 1; looks < 5; looks += 1) await pass(5_000);
  expect(told).toEqual(['failing']);
  health.answered(202);
  expect(told).toEqual(['failing', 'fine']);
});

test('a server elsewhere that wants to know who asks is one that nobody is signed in at, until it answers', () => {
  const { told, health } = lookedAfter();
  health.answered(401);
  health.answered(401);
  health.answered(404);
  expect(told).toEqual(['unauthenticated']);
  health.answered(200);
  expect(told).toEqual(['unauthenticated', 'fine']);
  const here = lookedAfter(false);
  here.health.answered(401);
  expect(here.told).toEqual([]);
});

test('while its process is away, and when the proxy has gone, nothing is looked at', async () => {
  const { server, told, health, pass } = lookedAfter();
  health.answered(200);
  health.pause();
  await pass(60_000);
  health.answered(200);
  server.status = undefined;
  await pass(10_000);
  health.close();
  health.answered(200);
  await pass(60_000);
  expect([server.looks, told]).toEqual([1, []]);
});
