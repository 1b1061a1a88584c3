import { systemClock, type Clock } from '@skep/core/time/clock.ts';
import { describe, expect, test } from 'vitest';
import { commandUnderTest, NOTHING_LEFT, type CommandUnderTest } from '../command-under-test.fixture.ts';
import type { RunConfig } from '../run-config/run-config.ts';
import { MemoryRuntime } from '../runtime/doubles/memory-runtime.ts';
import { idle } from '../runtime/doubles/program.ts';
import { RESTART } from '../supervisor/watch.ts';
import { readStatus } from '../supervisor/state.ts';
import type { PolicyGate, Wanted } from '../supervisor/policy.ts';

const why = 'only servers of the company';
const CREATION = `Error: server creation blocked by policy: ${why}; nothing was made; whoever keeps the policy can allow it\n`;
const START = `Error: server restart blocked by policy: ${why}; whoever keeps the policy can allow it; then start it again\n`;

const mayStart = async (): Promise<undefined> => undefined;

/** A gate that a test opens and closes. */
class Gate implements PolicyGate {
  isOpen = true;
  readonly asked: (Wanted & Partial<RunConfig>)[] = [];
  readonly mayCreate = (wanted: Wanted): Promise<string | undefined> => {
    this.asked.push(wanted);
    return Promise.resolve(undefined);
  };
  readonly mayStart = async (): Promise<string | undefined> => (this.isOpen ? undefined : why);
}

/** A machine whose gate closes once the workload runs. */
async function running(): Promise<{ readonly skep: CommandUnderTest; readonly gate: Gate }> {
  const gate = new Gate();
  const skep = await commandUnderTest({ policy: gate });
  await skep.output('run fake:1 --name a1');
  gate.isOpen = false;
  return { skep, gate };
}

describe('a policy gate', () => {
  test.each<[string, string, Partial<Wanted>]>([
    ['an image', 'run fake:1 --name a1', { name: 'a1', image: 'fake:1', group: 'default' }],
    ['a package', 'run npx://fake --name a1', { image: 'npx://fake', package: { kind: 'package', ecosystem: 'npm', name: 'fake' } }], // prettier-ignore
    ['permissions', 'run fake:1 --permission-profile none --isolate-network', { permission_profile: expect.objectContaining({ name: 'none' }) as object, isolate_network: true }], // prettier-ignore
    ['an import', 'run --from-config x.json', { name: 'a1', image: 'fake:1' }],
  ])('is asked about %s before anything is fetched', async (_, line, wanted) => {
    const asked: Wanted[] = [];
    const runtime = new MemoryRuntime({ 'fake:1': idle, fake: idle });
    const skep = await commandUnderTest({
      runtime,
      files: { 'x.json': { name: 'a1', image: 'fake:1', transport: 'stdio', port: 0 } },
      policy: { mayStart, mayCreate: async (one) => (asked.push(one), why) },
    });
    expect(await skep.refusal(line)).toContain(CREATION);
    expect(await skep.left()).toEqual(NOTHING_LEFT);
    expect(runtime.prepared).toEqual([]);
    // By the supervisor, or by the command itself.
    expect(asked).toEqual([expect.objectContaining(wanted)]);
  });

  test('is asked again, of all of it, before it is saved', async () => {
    const gate = new Gate();
    const second: PolicyGate = {
      mayStart: gate.mayStart,
      mayCreate: async (one) => (await gate.mayCreate(one), one.transport === undefined ? undefined : why),
    };
    const skep = await commandUnderTest({ policy: second });
    expect(await skep.refusal('run fake:1 --name a1 -e A=1')).toContain(CREATION);
    expect(await skep.left()).toEqual(NOTHING_LEFT);
    expect(gate.asked.map((one) => one.env_vars)).toEqual([undefined, { A: '1' }]);
  });

  test('that refuses the first start leaves nothing', async () => {
    const gate = new Gate();
    gate.isOpen = false;
    const skep = await commandUnderTest({ policy: gate });
    expect(await skep.refusal('run fake:1 --name a1')).toContain(START);
    expect(await skep.refusal('run fake:1 --name a1 --foreground')).toContain(START);
    expect(await skep.left()).toEqual(NOTHING_LEFT);
  });

  test('that fails lets nothing through', async () => {
    const skep = await commandUnderTest({
      policy: { mayStart, mayCreate: () => Promise.reject(new Error('its file is gone')) },
    });
    expect(await skep.refusal('run fake:1 --name a1')).toContain('Error: internal error');
    expect(await skep.left()).toEqual(NOTHING_LEFT);
  });

  test('that refuses a start stops the workload, and says why wherever it is shown', async () => {
    const { skep, gate } = await running();
    await skep.output('stop a1');
    expect((await skep.run('start a1')).err).toContain(START);
    expect(await readStatus(skep.places, 'a1')).toMatchObject({
      status: 'policy_stopped',
      status_context: why,
      process_id: 0,
    });
    expect(await skep.output('list --all')).toContain('⊘ policy_stopped');
    expect((await skep.run('list')).err).toContain('Not running: a1 (policy_stopped)');
    expect(JSON.parse(await skep.output('list --all --format json'))).toMatchObject([
      { status: 'policy_stopped', status_context: why },
    ]);
    expect(await skep.output('status a1')).toMatch(/^Status: +⊘ policy_stopped\nHealth: +only servers of/m);
    expect(await skep.refusal('run fake:1 --name a1')).toContain("'a1' already exists");
    gate.isOpen = true;
    await skep.output('start a1');
    expect(await readStatus(skep.places, 'a1')).toMatchObject({ status: 'running' });
  });

  test('is not asked of what runs, and keeps what has ended from coming back', async () => {
    const { skep } = await running();
    await skep.killSupervisor();
    await skep.startSupervisor();
    await expect.poll(() => readStatus(skep.places, 'a1')).toMatchObject({ status: 'running' });
    await skep.killSupervisor();
    await skep.runtime.stop('a1');
    await skep.startSupervisor();
    await expect.poll(() => readStatus(skep.places, 'a1')).toMatchObject({ status: 'policy_stopped' });
    await skep.killSupervisor();
    await skep.startSupervisor();
    expect(await readStatus(skep.places, 'a1')).toMatchObject({ status: 'policy_stopped' });
  });

  test('keeps a server that has crashed from coming back', async () => {
    const gate = new Gate();
    const clock: Clock = {
      ...systemClock,
      sleep: async (ms, signal) => void (ms < RESTART.firstDelayMs && (await systemClock.sleep(ms, signal))),
    };
    const skep = await commandUnderTest({ policy: gate, clock });
    await skep.output('run fake:1 --name a1');
    gate.isOpen = false;
    skep.runtime.end('a1', 3);
    await expect
      .poll(() => readStatus(skep.places, 'a1'))
      .toMatchObject({ status: 'policy_stopped', status_context: why, process_id: 0 });
    expect(skep.runtime.startsOf('a1')).toBe(1);
  });

  test('that refuses what a workload would become leaves it as it is', async () => {
    const policy: PolicyGate = {
      mayCreate: async ({ image }) => (image === 'fake:2' ? why : undefined),
      mayStart: async ({ isolate_network: isolated }) => (isolated === true ? why : undefined),
    };
    const runtime = new MemoryRuntime({ 'fake:1': idle, 'fake:2': idle });
    const skep = await commandUnderTest({ runtime, policy });
    await skep.output('run fake:1 --name a1');
    expect(await skep.refusal('upgrade a1 --to 2 --yes')).toContain(CREATION);
    expect(await skep.refusal('deny a1 --isolate-network')).toContain(START);
    expect(runtime.prepared.map(({ source }) => source)).toEqual([{ kind: 'image', reference: 'fake:1' }]);
    expect(runtime.specOf('a1')).toMatchObject({ reference: 'fake:1' });
    expect(await readStatus(skep.places, 'a1')).toMatchObject({ status: 'running' });
  });

  test('that refuses a start has nothing fetched for it', async () => {
    const { skep } = await running();
    await skep.output('stop a1');
    skep.runtime.has = async () => false;
    expect((await skep.run('start a1')).err).toContain(START);
    expect(skep.runtime.prepared).toHaveLength(1);
  });
});
