import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import type { RunConfig } from '../run-config/run-config.ts';
import { overlaysOf } from './overlays.ts';

test.each(['file', 'directory/x'])('nothing is hidden behind what is not empty: %s', async (name) => {
  const home = await mkdtemp(path.join(tmpdir(), 'skep-overlays-'));
  onTestFinished(() => rm(home, { recursive: true, force: true }));
  const places = { ignoreFile: path.join(home, 'skepignore'), nothingDir: path.join(home, 'nothing') };
  const source = path.join(home, 'mounted');
  await mkdir(source);
  await writeFile(path.join(source, '.env'), 'TOKEN=hush');
  await writeFile(places.ignoreFile, '.env\n');
  const config = { permission_profile: { read: [`${source}:/x`], write: [] } } as unknown as RunConfig;
  expect(await overlaysOf(config, places)).toEqual([
    { source: path.join(places.nothingDir, 'file'), target: '/x/.env', readOnly: true },
  ]);
  await rm(places.nothingDir, { recursive: true });
  await mkdir(path.join(places.nothingDir, 'directory'), { recursive: true });
  await writeFile(path.join(places.nothingDir, name), 'seen');
  await expect(overlaysOf(config, places)).rejects.toMatchObject({
    code: 'run/cannot-hide',
    message: expect.stringContaining(`"${places.nothingDir}"`),
    hint: 'remove it and try again',
  });
});
