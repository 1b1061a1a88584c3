import { readdir } from 'node:fs/promises';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { describe, expect, onTestFinished, test } from 'vitest';
import { keptPorts } from '../run-config/kept-ports.ts';
import { commandUnderTest, type CommandUnderTest } from '../command-under-test.fixture.ts';

const portOf = async (skep: CommandUnderTest): Promise<number> => {
  const [item] = JSON.parse(await skep.output('list --all --format json')) as { port: number }[];
  return item?.port ?? 0;
};

describe('the port of a name', () => {
  test('is the same after rm and a run of the same name, and another for another name', async () => {
    const skep = await commandUnderTest();
    const url = await skep.output('run fake:1 --name a1');
    await skep.output('rm a1');
    expect(await skep.output('run fake:1 --name a1')).toBe(url);
    expect(await skep.output('run fake:1 --name b1')).not.toBe(url);
  });

  test('that others have by then is told, and another one drawn', async () => {
    const skep = await commandUnderTest();
    await skep.output('run fake:1 --name a1');
    const port = await portOf(skep);
    await skep.output('rm a1');
    const other = createServer().listen(port, '127.0.0.1');
    onTestFinished(() => void other.close());
    await once(other, 'listening');
    const { err } = await skep.run('run fake:1 --name a1');
    const now = await portOf(skep);
    expect(now).not.toBe(port);
    expect(err).toContain(
      `Warning: port ${port}, which a1 had before, is taken; the port of its own is ${now} now\n`,
    );
  });

  test('goes with the data', async () => {
    const skep = await commandUnderTest();
    await skep.output('run fake:1 --name a1');
    await skep.output('rm a1 --data');
    expect(await keptPorts(skep.places)).toEqual(new Map());
  });

  test('stays after rm --all, and goes with rm --all --data, also of a name that is gone', async () => {
    const skep = await commandUnderTest();
    const url = await skep.output('run fake:1 --name a1');
    await skep.output('rm --all --yes');
    expect(await skep.output('run fake:1 --name a1')).toBe(url);
    await skep.output('rm a1');
    await skep.output('rm --all --data --yes');
    expect(await keptPorts(skep.places)).toEqual(new Map());
    expect(await readdir(skep.places.dataDir).catch(() => [])).toEqual([]);
  });

  test('is named on a terminal when it stays', async () => {
    const skep = await commandUnderTest();
    const terminal = { liveErr: true };
    for (const [flags, said] of [
      ['', expect.stringContaining('same address')],
      ['--data', expect.not.stringContaining('address')],
    ] as const) {
      await skep.output('run fake:1 --name a1');
      expect((await skep.run(`rm a1 ${flags}`, { terminal })).err).toEqual(said);
    }
  });

  test('is not kept of a run that failed', async () => {
    const skep = await commandUnderTest();
    await skep.run('run missing:1 --name b1');
    expect(await keptPorts(skep.places)).toEqual(new Map());
  });
});
