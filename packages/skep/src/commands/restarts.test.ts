import { describe, expect, test } from 'vitest';
import {
  commandUnderTest,
  type CommandUnderTest,
  type MachineUnderTest,
} from '../command-under-test.fixture.ts';
import { systemClock, type Clock } from '@skep/core/time/clock.ts';

/** So long a server has to answer for the first time: longer than any wait before it is started again. */
const PATIENCE_MS = 61_000;

/** What is waited for long, before a server is started again, is over at once; the time that a server has to answer is not. */
const impatient: Clock = {
  ...systemClock,
  sleep: (ms, signal) =>
    ms >= 500 && ms !== PATIENCE_MS ? Promise.resolve() : systemClock.sleep(ms, signal),
};

async function running(machine: MachineUnderTest = {}): Promise<CommandUnderTest> {
  const skep = await commandUnderTest({ clock: impatient, ...machine });
  await skep.output(`run fake:1 --name a1 --check-timeout ${PATIENCE_MS / 1000}s`);
  return skep;
}

const shown = async (skep: CommandUnderTest): Promise<Record<string, unknown>> =>
  JSON.parse(await skep.output('status a1 --format json')) as Record<string, unknown>;

/** Generous: it is over when it is so, and takes a while on a machine that has much to do. */
const EVENTUALLY = { timeout: 25_000 };

describe('a server that ends by itself', () => {
  test('is started again, on the same address', async () => {
    const skep = await running();
    const { url } = await shown(skep);
    skep.runtime.end('a1', 3);
    await expect.poll(() => skep.runtime.startsOf('a1'), EVENTUALLY).toBe(2);
    await expect.poll(() => shown(skep), EVENTUALLY).toMatchObject({ status: 'running', url });
  });

  test('is not started again for ever, and the person is told why and where to look', async () => {
    const skep = await running();
    skep.runtime.crash = { exitCode: 3, says: 'no disk\n' };
    skep.runtime.end('a1', 3);
    await expect
      .poll(() => shown(skep), EVENTUALLY)
      .toMatchObject({
        status: 'error',
        health: expect.stringMatching(
          /exit status 3 and is not restarted any more; see skep logs a1$/,
        ) as unknown,
      });
    expect((await skep.run('list')).err).toContain('Not running: a1 (error)');
    expect(await skep.output('logs a1')).toContain('no disk\n');
  });

  test('can be started by the person after that', async () => {
    const skep = await running();
    skep.runtime.crash = { exitCode: 3, says: 'no disk\n' };
    skep.runtime.end('a1', 3);
    await expect.poll(() => shown(skep), EVENTUALLY).toMatchObject({ status: 'error' });
    skep.runtime.crash = undefined;
    await skep.output('start a1');
    expect(await shown(skep)).toMatchObject({ status: 'running' });
  });

  test('stays stopped when the person stopped it', async () => {
    const skep = await running();
    await skep.output('stop a1');
    await skep.output('list');
    expect(await shown(skep)).toMatchObject({ status: 'stopped' });
    expect(skep.runtime.startsOf('a1')).toBe(1);
  });
});

describe('an engine that goes away', () => {
  test('and comes back finds the server that ran on taken up, not started again', async () => {
    const skep = await running();
    await skep.killSupervisor();
    skep.runtime.unreachable = true;
    await skep.startSupervisor();
    expect(await shown(skep)).toMatchObject({ status: 'unhealthy' });
    skep.runtime.unreachable = false;
    await expect.poll(() => shown(skep), EVENTUALLY).toMatchObject({ status: 'running' });
    expect(skep.runtime.startsOf('a1')).toBe(1);
  });
});

describe('a run that a supervisor carries out', () => {
  test.each([
    ['fake:1 --name a1'],
    ['fake:1 --name a1 -e A=b -l team=core -- one two'],
    ['npx://fake --name a1'],
    ['fake:1 --name a1 --transport streamable-http --target-port 80'],
    ['fake:1 --name a1 --no-check --image-verification disabled'],
    ['fake:1 --name a1 --network none'],
    ['fake:1 --name a1 --sandbox-user root'],
    ['fake:1 --name a1 --host 0.0.0.0 --proxy-port 0'],
    ['fake:1 --name a1 --host ::1 --proxy-port 0'],
  ])('says and saves what the command itself would: %s', async (flags) => {
    const outcomes = [];
    for (const supervisor of ['up', 'asked'] as const) {
      const skep = await commandUnderTest({ supervisor });
      const { status, err } = await skep.run(`run ${flags}`);
      const saved = JSON.parse(await skep.output('export a1 -')) as { port: number };
      const [told, text] = [err, JSON.stringify(saved)].map((one) => one.replaceAll(`${saved.port}`, 'PORT'));
      outcomes.push({ status, told, text });
    }
    expect(outcomes[0]).toMatchObject({ status: 0 });
    expect(outcomes[0]).toEqual(outcomes[1]);
  });
});
