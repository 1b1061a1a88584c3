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
}
