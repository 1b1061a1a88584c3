import { existsSync } from 'node:fs';
import { mkdir, readdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { describe, expect, test, vi } from 'vitest';
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

  test('and rm --all leave nothing of writes that were cut short', async () => {
    const skep = await keeping();
    const { stateDir, previousDir, keptDir } = skep.places;
    const part = '.a1.json.7fb592b6-bceb-40a4-baec-5babe0781b2c.tmp';
    for (const folder of [stateDir, previousDir, keptDir]) {
      await mkdir(folder, { recursive: true });
      await writeFile(join(folder, part), '{');
    }
    await writeFile(join(stateDir, '.of-somebody.tmp'), '');
    await skep.output('rm --all --data');
    expect([existsSync(keptDir), existsSync(previousDir)]).toEqual([false, false]);
    expect((await readdir(stateDir)).filter((name) => name.endsWith('.tmp'))).toEqual(['.of-somebody.tmp']);
  });

  describe('that is cut short between two removals', () => {
    const cut = new SkepError('runtime/engine-unreachable');
    /** What a supervisor that was killed left is finished by the next. */
    const nextSupervisor = async (skep: CommandUnderTest): Promise<void> => {
      await skep.killSupervisor();
      await skep.startSupervisor();
      await vi.waitFor(async () => expect(await skep.left()).toEqual(NOTHING_LEFT));
    };

    test('goes on with the data where --data was given', async () => {
      const skep = await keeping();
      vi.spyOn(skep.runtime, 'removeData').mockRejectedValueOnce(cut);
      const { status, err } = await skep.run('rm --data a1');
      expect({ status, kept: isKept(skep) }).toEqual({ status: 1, kept: true });
      expect(err).toContain('the container engine does not answer');
      await nextSupervisor(skep);
      expect(isKept(skep)).toBe(false);
      expect(await keptNames(skep.places)).toEqual([]);
    });

    test('leaves no place in which there was nothing, which only its container could tell', async () => {
      const skep = await commandUnderTest();
      await skep.output('run npx://fake --name a1');
      const { runtime } = skep;
      vi.spyOn(runtime, 'holdsData').mockImplementation(async (name) => !(await runtime.inspect(name)));
      const removed = vi.spyOn(runtime, 'removeData');
      vi.spyOn(runtime, 'discard').mockRejectedValueOnce(cut);
      expect(await skep.run('rm a1')).toMatchObject({ status: 1 });
      await nextSupervisor(skep);
      expect(removed.mock.calls.map(([name]) => name)).toEqual(['a1']);
      expect(await keptNames(skep.places)).toEqual([]);
    });

    test('is finished before a new run of the name, also of data alone', async () => {
      const skep = await keeping();
      await skep.output('rm a1');
      vi.spyOn(skep.runtime, 'removeData').mockRejectedValueOnce(cut);
      expect(await skep.run('rm --data a1')).toMatchObject({ status: 1 });
      await skep.killSupervisor();
      await skep.output('run npx://fake --name a1');
      expect(isKept(skep)).toBe(false);
    });

    test('takes nothing of what was started again since', async () => {
      const skep = await keeping();
      vi.spyOn(skep.runtime, 'inspect').mockRejectedValueOnce(cut);
      expect(await skep.run('rm --data a1')).toMatchObject({ status: 1 });
      await skep.output('start a1');
      await skep.output('rm a1');
      expect(isKept(skep)).toBe(true);
    });
  });

  test('is finished with all that is known of a server where it was cut short before', async () => {
    const skep = await commandUnderTest();
    await skep.output('run npx://fake --name a1');
    vi.spyOn(skep.runtime, 'holdsData').mockRejectedValueOnce(new SkepError('runtime/engine-refused'));
    expect(await skep.run('rm a1')).toMatchObject({ status: 1 });
    expect(await skep.left()).toMatchObject({ saved: ['a1'], statuses: ['a1'] });
    await skep.output('rm a1');
    expect(await skep.left()).toEqual(NOTHING_LEFT);
    expect(await keptNames(skep.places)).toEqual([]);
  });

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

describe('a volume that servers share', () => {
  /** Two servers with the same volume, in which something is. */
  async function sharing(): Promise<CommandUnderTest> {
    const skep = await commandUnderTest();
    await skep.output('run fake:1 --name a1 -v volume://notes:/in');
    await skep.output('run example/tools:2 --name b1 -v volume://notes:/out:ro');
    skep.runtime.volumes.add('notes');
    return skep;
  }
  const rest = (skep: CommandUnderTest) => [...skep.runtime.volumes];

  test('is given to both, is on their cards, and is where status says that data lies', async () => {
    const skep = await sharing();
    expect(skep.runtime.specOf('a1')?.volumes).toEqual([{ volume: 'notes', target: '/in', readOnly: false }]);
    expect(skep.runtime.specOf('b1')).toMatchObject({
      mounts: [],
      volumes: [{ volume: 'notes', target: '/out', readOnly: true }],
    });
    expect(await skep.output('status b1')).toMatch(/^Shares: +the volume notes as \/out, read-only$/m);
    expect(await skep.output('status a1')).toMatch(/^Data: +shared memory notes$/m);
  });

  test('stays over rm, and goes with the data of the last name that had it', async () => {
    const skep = await sharing();
    expect((await skep.run('rm a1')).err).toContain('The data of a1 stays');
    expect((await skep.run('rm --data b1')).err).toBe(
      'The volume notes stays, because a1 may need it (skep rm --data a1)\n',
    );
    expect(rest(skep)).toEqual(['notes']);
    expect((await skep.run('run fake:1 --name a1 -v volume://notes:/in')).err).toContain(
      'a1 finds what it kept',
    );
    await skep.output('rm --data a1');
    expect(rest(skep)).toEqual([]);
    expect(await keptNames(skep.places)).toEqual([]);
    expect(await skep.left()).toEqual(NOTHING_LEFT);
  });

  test('goes with all data, also where every server is removed at once', async () => {
    const skep = await sharing();
    expect((await skep.run('rm --all --data')).err).not.toContain('notes');
    expect(rest(skep)).toEqual([]);
    expect(await keptNames(skep.places)).toEqual([]);
  });

  test.each(['record', 'configuration'])('stays where the %s of another cannot be read', async (which) => {
    const skep = await sharing();
    const { keptDir, runConfigsDir } = skep.places;
    const isRecord = which === 'record';
    await skep.output(isRecord ? 'rm b1' : 'stop b1');
    if (!isRecord) await rm(join(keptDir, 'b1'), { recursive: true });
    await writeFile(isRecord ? join(keptDir, 'b1/kept.json') : join(runConfigsDir, 'b1.json'), '{');
    expect((await skep.run('rm --data a1')).err).toContain('The volume notes stays, because b1 may need it');
    expect(rest(skep)).toEqual(['notes']);
  });

  test('is not forgotten by a run of the name without it', async () => {
    const skep = await sharing();
    await skep.output('rm --data b1');
    await skep.output('rm a1');
    await skep.output('run npx://fake --name a1');
    expect(await skep.output('status a1')).toMatch(/^Data: +memory of a1\/data, shared memory notes$/m);
    await skep.output('rm --data a1');
    expect(rest(skep)).toEqual([]);
  });

  test('is no data path of a package that has it in that place', async () => {
    const skep = await commandUnderTest();
    await skep.output('run npx://fake --name a1 -v volume://notes:/data');
    expect(skep.runtime.specOf('a1')?.data).toBeUndefined();
  });

  test('comes back from an export, with the consent of a person', async () => {
    const skep = await sharing();
    await skep.output('export a1 a1.json');
    await skep.output('rm --all --data');
    const refused = await skep.refusal('run --from-config a1.json');
    expect(refused).toContain(
      'asks to write the volume "notes" that servers share (as "/in"), which is not granted',
    );
    await skep.output('run --from-config a1.json --trust-config');
    expect(skep.runtime.specOf('a1')?.volumes).toEqual([{ volume: 'notes', target: '/in', readOnly: false }]);
  });

  test('is left alone by permit and deny of other paths, and taken away by its place', async () => {
    const skep = await sharing();
    await mkdir(join(skep.cwd, 'more'));
    await skep.output('permit a1 ./more');
    expect(skep.runtime.specOf('a1')).toMatchObject({
      mounts: [{ source: join(skep.cwd, 'more') }],
      volumes: [{ volume: 'notes' }],
    });
    await skep.output('deny a1 /in');
    expect(skep.runtime.specOf('a1')?.volumes).toBeUndefined();
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
