import { mkdir, mkdtemp, readdir, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { STDIO_SPEC } from '../doubles/stdio-spec.ts';
import { environmentIn } from './environment.fixture.ts';
import { groupOf } from './control-groups.ts';
import { removeFiles } from './own-directories.ts';
import { workloadPlaces, workloadsDirectory } from './places.ts';
import { encodeSpec } from './records.ts';
import { SandboxRuntime } from './sandbox-runtime.ts';

test('a removal that is cut short leaves the directory by which it is found, until nothing else is left', async () => {
  const root = await mkdtemp(path.join(tmpdir(), 'skep-sandbox-remove-'));
  onTestFinished(() => removeFiles(root));
  const [memory, pids, dataDir] = ['memory', 'pids', 'data'].map((one) => path.join(root, one)) as [
    string,
    string,
    string,
  ];
  let isKilled = true;
  const environment = environmentIn(root, {
    randomId() {
      // The first thing that a removal of the directory asks for.
      if (isKilled) throw new TypeError('killed');
      return 'random';
    },
  });
  const groups = { version: 1, memory, pids } as const;
  const runtime = new SandboxRuntime(environment, {
    program: 'bwrap',
    version: '1',
    inherited: [],
    groups,
  } as unknown as ConstructorParameters<typeof SandboxRuntime>[1]);
  const places = workloadPlaces(path.join(workloadsDirectory(environment), 'a1'));
  const volumes = [{ volume: 'notes', target: '/notes', readOnly: false }];
  const spec = { ...STDIO_SPEC, name: 'a1', data: ['/data'], volumes };
  for (const made of [
    places.directory,
    ...groupOf(groups, places),
    path.join(dataDir, 'kept/a1/data'),
    path.join(dataDir, 'volumes/notes'),
  ])
    await mkdir(made, { recursive: true });
  await writeFile(places.spec, encodeSpec({ spec, createdAt: new Date() }));
  await expect(runtime.remove('a1')).rejects.toThrow('killed');
  expect(await runtime.inspect('a1')).toMatchObject({ name: 'a1' });
  expect([await readdir(memory), await readdir(pids)]).toEqual([[], []]);
  expect([await readdir(dataDir), await readdir(path.join(dataDir, 'kept'))]).toEqual([
    ['kept', 'sandbox'],
    [],
  ]);
  // Whose description is damaged may have any volume, also an empty one.
  await mkdir(path.join(dataDir, 'volumes/notes'), { recursive: true });
  const other = workloadPlaces(path.join(workloadsDirectory(environment), 'b1'));
  await mkdir(other.directory);
  await writeFile(other.spec, '{');
  isKilled = false;
  await runtime.remove('a1');
  expect(await readdir(path.join(dataDir, 'volumes'))).toEqual(['notes']);
  expect(await runtime.inspect('a1')).toBeUndefined();
});
