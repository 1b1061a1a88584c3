import { describe, expect, test } from 'vitest';
import type { RuntimeEvent } from '../runtime.ts';
import type { ContractBench } from './bench.ts';

/** News of workloads. */
export function eventsContract(bench: ContractBench): void {
  describe('events', () => {
    test('reports start, exit and removal in order', async () => {
      const wanted = bench.spec();
      const ending = new AbortController();
      const seen: RuntimeEvent['action'][] = [];
      const watching = (async () => {
        for await (const event of bench.runtime.events(ending.signal)) {
          if (event.name !== wanted.name) continue;
          seen.push(event.action);
          if (event.action === 'remove') return;
        }
      })();
      await bench.runtime.create(wanted);
      await bench.runtime.start(wanted.name);
      await expect.poll(() => seen, { timeout: 5000 }).toEqual(['start']);
      await bench.runtime.stop(wanted.name, 3000);
      await expect.poll(() => seen, { timeout: 5000 }).toEqual(['start', 'exit']);
      await bench.runtime.remove(wanted.name);
      await watching;
      expect(seen).toEqual(['start', 'exit', 'remove']);
      ending.abort();
    });

    test('ends the events when asked to', async () => {
      const wanted = bench.spec();
      const seen: RuntimeEvent[] = [];
      // Others may use the engine meanwhile.
      for await (const event of bench.runtime.events(AbortSignal.timeout(200))) {
        if (event.name === wanted.name) seen.push(event);
      }
      expect(seen).toEqual([]);
    });
  });
}
