import { describe, expect, test } from 'vitest';
import { forever, type ContractBench } from './bench.ts';

/** Names, labels and what is not there. */
export function namesContract(bench: ContractBench): void {
  describe('names', () => {
    test('takes stop and remove of what is not there as done', async () => {
      const { name } = await bench.running();
      await bench.runtime.stop(name, 1000);
      await bench.runtime.stop(name, 1000);
      await bench.runtime.remove(name);
      await bench.runtime.remove(name);
      expect(await bench.runtime.inspect(name)).toBeUndefined();
      await expect(bench.runtime.start(name)).rejects.toMatchObject({ code: 'runtime/no-such-workload' });
      await expect(bench.runtime.attach(name)).rejects.toMatchObject({ code: 'runtime/no-such-workload' });
      await expect(bench.runtime.wait(name, forever())).rejects.toMatchObject({
        code: 'runtime/no-such-workload',
      });
    });

    test('refuses a name that is taken, and one that could be a path', async () => {
      const first = bench.spec();
      await bench.runtime.create(first);
      await expect(bench.runtime.create(first)).rejects.toMatchObject({ code: 'runtime/name-taken' });
      await expect(bench.runtime.create({ ...first, name: '../x' })).rejects.toMatchObject({
        code: 'runtime/invalid-workload',
      });
    });

    test('leaves nothing behind when it cannot create', async () => {
      await expect(
        bench.runtime.create(bench.spec({ reference: 'npm-gone@1-000000000000' })),
      ).rejects.toMatchObject({
        code: expect.stringMatching(/^runtime\/(?:image-not-found|package-not-found|engine-refused)$/),
      });
      expect(await bench.harness.leftovers()).toEqual([]);
    });

    test('lists its workloads with their labels', async () => {
      const labels = { 'skep.test': 'contract', team: 'a b="c"' };
      const wanted = bench.spec({ labels });
      await bench.runtime.create(wanted);
      const listed = (await bench.runtime.list()).find((one) => one.name === wanted.name);
      expect(listed).toMatchObject({ name: wanted.name, state: 'created', labels });
    });

    test('keeps what a workload uses when asked to discard it', async () => {
      const { probe } = await bench.running();
      await bench.runtime.discard(bench.reference);
      expect(await probe.call('ping')).toEqual({});
      await bench.runtime.create(bench.spec());
    });
  });
}
