import { describe, expect, test } from 'vitest';
import { forever, type ContractBench } from './bench.ts';
import { ProbeCaller } from './probe-caller.ts';

/** The protocol channel. */
export function stdioContract(bench: ContractBench): void {
  describe('stdio', () => {
    test('carries a message of 4 MiB both ways', async () => {
      const { probe } = await bench.running();
      const text = 'x'.repeat(4 * 1024 * 1024);
      expect(await probe.call('probe/echo', { text })).toEqual({ text });
    });

    test('lets a second client in after the first one left', async ({ skip }) => {
      if (bench.lacks('input')) skip('its servers end with their client');
      const { name, probe } = await bench.running();
      probe.close();
      const second = new ProbeCaller(await bench.runtime.attach(name));
      expect(await second.call('probe/echo', { turn: 2 })).toEqual({ turn: 2 });
      expect(await bench.runtime.inspect(name)).toMatchObject({ state: 'running' });
    });

    test('starts again where it ended with its client', async ({ skip }) => {
      if (!bench.lacks('input')) skip('its servers outlive their client');
      const { name, probe } = await bench.running();
      probe.close();
      expect(await bench.runtime.wait(name, forever())).toBe(0);
      await bench.runtime.start(name);
      const second = new ProbeCaller(await bench.runtime.attach(name));
      expect(await second.call('probe/echo', { turn: 2 })).toEqual({ turn: 2 });
    });

    test('ends the attachment when the workload ends, and refuses a new one', async () => {
      const { name, probe } = await bench.running();
      await bench.runtime.stop(name, 3000);
      await probe.ended();
      await expect(bench.runtime.attach(name)).rejects.toMatchObject({ code: 'runtime/not-running' });
    });
  });
}
