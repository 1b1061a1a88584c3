import { expect, test } from 'vitest';
import { forever, type ContractBench } from './bench.ts';
import { ProbeCaller } from './probe-caller.ts';

/** A workload does not depend on the process that made it. */
export function outlivingContract(bench: ContractBench): void {
  test('survives the death of the process that started it', async ({ skip }) => {
    if (bench.lacks('input')) skip('its servers end with their client');
    const wanted = bench.spec();
    const holder = bench.hold(wanted);
    await new Promise((resolve) => holder.stdout?.once('data', resolve));
    const before = await bench.runtime.inspect(wanted.name);
    const dead = new Promise((resolve) => holder.once('exit', resolve));
    holder.kill('SIGKILL');
    await dead;
    const probe = new ProbeCaller(await bench.runtime.attach(wanted.name));
    expect(await probe.call('probe/echo', { still: 'here' })).toEqual({ still: 'here' });
    expect(await bench.runtime.inspect(wanted.name)).toEqual(before);
    const code = bench.runtime.wait(wanted.name, forever());
    probe.call('probe/exit', { code: 5 }).catch(() => {});
    expect(await code).toBe(5);
  });

  test('starts once where several ask for that at once, as far as it says so', async ({ skip }) => {
    const wanted = bench.spec();
    if (bench.runtime.sharesStart?.(wanted) !== true) skip('only one may ask for it');
    await bench.runtime.create(wanted);
    const [, , started] = await Promise.all([
      bench.runtime.start(wanted.name),
      bench.runtime.start(wanted.name),
      // Whoever looks meanwhile sees it before or after.
      bench.runtime.inspect(wanted.name),
    ]);
    expect(['created', 'running']).toContain(started?.state);
    const probe = new ProbeCaller(await bench.runtime.attach(wanted.name));
    expect(await probe.call('probe/echo', { turn: 1 })).toEqual({ turn: 1 });
    const before = await bench.runtime.inspect(wanted.name);
    await bench.runtime.start(wanted.name);
    expect(await bench.runtime.inspect(wanted.name)).toEqual(before);
    probe.close();
  });
}
