import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { watchSize } from './size-watch.ts';

async function directoryOf(bytes: number): Promise<string> {
  const made = await mkdtemp(path.join(tmpdir(), 'skep-size-'));
  onTestFinished(() => rm(made, { recursive: true }));
  await writeFile(path.join(made, 'file'), Buffer.alloc(bytes, 1));
  return made;
}

test('a directory that grows beyond its size is told', async () => {
  const directory = await directoryOf(1000);
  await using watch = watchSize(directory, 512);
  const told = once(watch.tooLarge, 'abort');
  await writeFile(path.join(directory, 'more'), Buffer.alloc(1024 * 1024, 1));
  await told;
});

test('one that stays below it is not, and nothing looks at it any more', async () => {
  const watch = watchSize(await directoryOf(1000), 512);
  await watch[Symbol.asyncDispose]();
  expect(watch.tooLarge.aborted).toBe(false);
});
