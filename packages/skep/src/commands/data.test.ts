import { mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { commandUnderTest, NOTHING_LEFT, type CommandUnderTest } from '../command-under-test.fixture.ts';
import { keptNames } from '../supervisor/kept-data.ts';

/** A package whose server has kept something. */
async function keeping(): Promise<CommandUnderTest> {
  const skep = await commandUnderTest();
  await skep.output('run npx://fake --name a1');
  skep.runtime.holding.add('a1');
  return skep;
}

const isKept = (skep: CommandUnderTest): boolean => skep.runtime.holding.has('a1');

test('status says where the data of a server lies', async () => {
  const skep = await keeping();
  expect(await skep.output('status a1')).toMatch(/^Data: +memory of a1\/data$/m);
});

describe('skep rm', () => {
  test('keeps data where nobody can be asked, and names it', async () => {
    const skep = await keeping();
    expect(await skep.run('rm a1')).toEqual({
      status: 0,
      out: 'a1\n',
      err: 'The data of a1 stays, for the next skep run of that name (skep rm --data a1 removes it):\n  memory of a1/data\n',
    });
    expect(await skep.left()).toEqual(NOTHING_LEFT);
    expect(isKept(skep)).toBe(true);
  });

  test('says nothing of data where none was kept, and remembers nothing', async () => {
    const skep = await commandUnderTest();
    await skep.output('run npx://fake --name a1');
    expect(await skep.run('rm a1')).toEqual({ status: 0, out: 'a1\n', err: '' });
    expect(await keptNames(skep.places)).toEqual([]);
  });

  test.each(['rm --data a1', 'rm --all --data'])(
    '%s removes data, of a workload that is gone too',
    async (line) => {
      for (const before of ['status a1', 'rm a1']) {
        const skep = await keeping();
        await skep.output(before);
        expect(await skep.run(line)).toEqual({ status: 0, out: 'a1\n', err: '' });
        expect(isKept(skep)).toBe(false);
        expect(await keptNames(skep.places)).toEqual([]);
        expect(await skep.left()).toEqual(NOTHING_LEFT);
      }
    },
  );

  test('removes data also where nothing can be written, as on a full disk', async () => {
    const skep = await keeping();
    const lock = join(skep.places.locksDir, 'addresses.lock');
    await rm(lock, { force: true });
    await mkdir(lock);
    await skep.run('rm --data a1');
    expect(isKept(skep)).toBe(false);
    expect(await keptNames(skep.places)).toEqual([]);
  });

  test('asks a person, who keeps it, removes it, or does neither', async () => {
    for (const [Data, kept] of [
      ['keep', true],
      ['remove', false],
    ] as const) {
      const skep = await keeping();
      await skep.output('rm a1', { answers: { Data } });
      expect(isKept(skep)).toBe(kept);
      expect(await skep.left()).toEqual(NOTHING_LEFT);
    }
    const skep = await keeping();
    expect(await skep.refusal('rm a1', { answers: { Data: 'cancel' } })).toContain('nothing was removed');
    expect(isKept(skep)).toBe(true);
  });

  test('asks nobody with --yes, and keeps the data', async () => {
    const skep = await keeping();
    await skep.output('rm --all --yes', { answers: {} });
    expect(isKept(skep)).toBe(true);
  });
});

test('a run of the same name says that it finds its data again', async () => {
  const skep = await keeping();
  await skep.output('rm a1');
  const { err } = await skep.run('run npx://fake --name a1');
  expect(err).toContain('a1 finds what it kept in memory of a1/data\n');
});

test('a run of the same name of another server says whose data it finds', async () => {
  const skep = await keeping();
  await skep.output('rm a1');
  const { err } = await skep.run('run npx://fake-too --name a1');
  expect(err).toContain(
    'Warning: a1 finds what another server, npx://fake, kept in memory of a1/data; skep rm --data a1 removes it\n',
  );
  await skep.output('rm a1');
  expect((await skep.run('run npx://fake-too --name a1')).err).toContain('a1 finds what it kept in');
});

test('a run that fails leaves no data behind', async () => {
  const skep = await commandUnderTest({ greet: () => new Promise(() => {}) });
  skep.runtime.crash = { exitCode: 1, says: 'no' };
  expect((await skep.run('run npx://fake --name a1')).status).toBe(1);
  expect(await keptNames(skep.places)).toEqual([]);
});

test('an image keeps nothing that it does not declare', async () => {
  const skep = await commandUnderTest();
  await skep.output('run fake:1 --name a1');
  expect(await skep.output('status a1')).not.toContain('Data');
});
