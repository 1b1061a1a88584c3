import { describe, expect, test } from 'vitest';
import { forever, silent, type ContractBench } from './bench.ts';

/** Getting the artefact of a workload. */
export function prepareContract(bench: ContractBench): void {
  describe('prepare', () => {
    test('says so when the artefact does not exist', async () => {
      const { source, code } = bench.harness.missing;
      const request = { source, addPackages: [], report: silent, signal: forever() };
      await expect(bench.runtime.prepare(request)).rejects.toMatchObject({ code });
      expect(await bench.harness.leftovers()).toEqual([]);
    });

    test('tells what is there from what is not', async ({ skip }) => {
      if (bench.lacks('local-images')) skip('it fetches images when it needs them');
      expect(await bench.runtime.has(bench.reference)).toBe(true);
      expect(await bench.runtime.has('skep-test/gone:1')).toBe(false);
    });

    test('sweeps away nothing that a workload uses', async () => {
      const spec = bench.spec();
      await bench.runtime.create(spec);
      await bench.runtime.sweep();
      expect(await bench.runtime.has(bench.reference)).toBe(true);
      expect(await bench.runtime.inspect(spec.name)).toMatchObject({ state: 'created' });
    });

    test.each(bench.harness.packages ?? [])(
      'fetches a package of $what once, which runs, and removes it again',
      async ({ fetch }) => {
        const { reference, version, ours } = await fetch(forever());
        expect(ours).toBe(true);
        expect(version).toMatch(/^v?1\.0\.0$/);
        expect(await fetch(forever())).toMatchObject({ reference, version });
        expect(await bench.runtime.has(reference)).toBe(true);
        const { name, probe } = await bench.attached({ reference });
        expect(await probe.call('initialize')).toHaveProperty('serverInfo');
        await bench.runtime.remove(name);
        await bench.runtime.discard(reference);
        expect(await bench.runtime.has(reference)).toBe(false);
      },
      // The first of Go compiles the standard library.
      300_000,
    );

    test.each(bench.harness.packages ?? [])(
      'stops fetching a package of $what when asked to, and leaves nothing',
      async ({ fetch }) => {
        await expect(fetch(AbortSignal.abort())).rejects.toMatchObject({ code: 'runtime/aborted' });
        expect(await bench.harness.leftovers()).toEqual([]);
      },
    );

    test('stops when asked to and leaves nothing', async () => {
      const signal = AbortSignal.abort();
      const request = { source: bench.harness.missing.source, addPackages: [], report: silent, signal };
      await expect(bench.runtime.prepare(request)).rejects.toMatchObject({ code: 'runtime/aborted' });
      expect(await bench.harness.leftovers()).toEqual([]);
    });
  });
}
