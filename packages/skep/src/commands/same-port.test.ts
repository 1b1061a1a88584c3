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

  test('is not kept of a run that failed, nor after rm --all', async () => {
    const skep = await commandUnderTest();
    await skep.output('run fake:1 --name a1');
    await skep.output('rm --all --yes');
    expect(await keptPorts(skep.places)).toEqual(new Map());
    await skep.run('run missing:1 --name b1');
    expect(await keptPorts(skep.places)).toEqual(new Map());
  });
});
