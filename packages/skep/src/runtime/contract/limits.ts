import { describe, expect, test } from 'vitest';
import { forever, type ContractBench } from './bench.ts';

const MIB = 1024 ** 2;

/** What a workload may use, and what becomes of one that uses more. */
export function limitsContract(bench: ContractBench): void {
  describe('limits', () => {
    const limits = { memory: 256 * MIB, pids: 64, cpus: 0, disk: 8 * MIB };

    test('those that are not held are told', async () => {
      const told = await bench.runtime.cautions({ name: 'limits', mounts: [], limits });
      expect(told).toEqual(
        bench.lacks('limits')
          ? ['memory', 'processes', 'files'].map((what) => expect.stringContaining(`its ${what} cannot`))
          : [],
      );
    });

    test('one that uses more memory is ended, and told from one that ended by itself', async ({ skip }) => {
      if (bench.lacks('limits')) skip('nothing holds them');
      const { name, probe } = await bench.running({ limits });
      probe.call('probe/hold', { bytes: 1024 * MIB }).catch(() => {});
      await bench.runtime.wait(name, forever());
      const exceeded = bench.lacks('told-memory') ? {} : { exceeded: 'memory' };
      expect(await bench.runtime.inspect(name)).toMatchObject({
        state: 'exited',
        exitCode: 137,
        ...exceeded,
      });
      await bench.runtime.start(name);
      await bench.runtime.stop(name, 0);
      expect(await bench.runtime.inspect(name)).not.toHaveProperty('exceeded');
    });

    test('one below its limits is left alone', async () => {
      const { probe } = await bench.running({ limits });
      expect(await probe.call('probe/hold', { bytes: 64 * MIB })).toBe('held');
      await probe.call('probe/write', { path: '/tmp/file', text: 'x'.repeat(MIB) });
      expect(await probe.call('probe/fork', { count: 20 })).toBe(20);
      expect(await probe.call('ping')).toEqual({});
    });

    test('processes end at their number', async ({ skip }) => {
      if (bench.lacks('limits')) skip('nothing holds them');
      const { probe } = await bench.running({ limits });
      expect(await probe.call('probe/fork', { count: 200 })).toBeLessThan(64);
    });

    test('no file gets longer than what may be kept', async ({ skip }) => {
      if (bench.lacks('limits')) skip('nothing holds them');
      const { probe } = await bench.running({ limits });
      const text = 'x'.repeat(MIB);
      for (let at = 0; at < 8; at += 1) await probe.call('probe/append', { path: '/tmp/long', text });
      await expect(probe.call('probe/append', { path: '/tmp/long', text })).rejects.toMatchObject({
        code: 'EFBIG',
      });
    });
  });
}
