import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { commandUnderTest } from '../command-under-test.fixture.ts';

test('a workload of another engine at the same address is left alone, and listed as it is', async () => {
  const skep = await commandUnderTest();
  await skep.output('run fake:1 --name a1');
  const file = join(skep.places.runConfigsDir, 'a1.json');
  const saved = JSON.parse(await readFile(file, 'utf8')) as { runtime: object };
  await writeFile(file, JSON.stringify({ ...saved, runtime: { ...saved.runtime, id: 'other' } }));
  expect(await skep.refusal('logs a1')).toMatch(
    /^Error: the workload belongs to another docker engine than the one at memory; .+\n$/,
  );
  expect(await skep.output('list')).toMatch(/^a1 .*running/m);
});
