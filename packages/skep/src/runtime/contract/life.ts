import { describe, expect, test } from 'vitest';
import { forever, type ContractBench } from './bench.ts';
import { ProbeCaller } from './probe-caller.ts';

/** From created to exited and back. */
export function lifeContract(bench: ContractBench): void {
  describe('life', () => {
    test('goes from created to running to exited, with times and the exit code', async () => {
      const wanted = bench.spec();
      await bench.runtime.create(wanted);
      const created = await bench.runtime.inspect(wanted.name);
      expect(created).toMatchObject({
        name: wanted.name,
        state: 'created',
        reference: bench.reference,
        labels: wanted.labels,
      });
      expect(created?.startedAt).toBeUndefined();
      await bench.runtime.start(wanted.name);
      const started = await bench.runtime.inspect(wanted.name);
      expect(started?.state).toBe('running');
      expect(started?.startedAt?.getTime()).toBeGreaterThanOrEqual(started?.createdAt.getTime() ?? Infinity);
      await bench.runtime.stop(wanted.name, 3000);
      const exited = await bench.runtime.inspect(wanted.name);
      expect(exited).toMatchObject({ state: 'exited', exitCode: 143 });
    });

    test('starts again after it ended', async () => {
      const { name, probe } = await bench.running();
      await bench.runtime.stop(name, 3000);
      await probe.ended();
      const again = new ProbeCaller(await attachWhenStarted(name));
      expect(await again.call('probe/echo', { turn: 2 })).toEqual({ turn: 2 });
      again.close();
    });

    async function attachWhenStarted(name: string) {
      await bench.runtime.start(name);
      return bench.runtime.attach(name);
    }

    test('tells waiters the exit code, during and after', async () => {
      const { name, probe } = await bench.running();
      const during = bench.runtime.wait(name, forever());
      probe.call('probe/exit', { code: 7 }).catch(() => {});
      expect(await during).toBe(7);
      expect(await bench.runtime.wait(name, forever())).toBe(7);
    });

    test('stops waiting when the signal says so', async () => {
      const { name } = await bench.running();
      const leaving = new AbortController();
      const waiting = bench.runtime.wait(name, leaving.signal);
      leaving.abort();
      await expect(waiting).rejects.toMatchObject({ code: 'runtime/aborted' });
    });

    test('kills a server that ignores the polite signal', async () => {
      const { name, probe } = await bench.running();
      await probe.call('probe/ignore-term');
      await bench.runtime.stop(name, 1000);
      expect(await bench.runtime.inspect(name)).toMatchObject({ state: 'exited', exitCode: 137 });
    });

    test('removes a running workload', async () => {
      const { name, probe } = await bench.running();
      await bench.runtime.remove(name);
      await probe.ended();
      expect(await bench.runtime.inspect(name)).toBeUndefined();
    });
  });
}
