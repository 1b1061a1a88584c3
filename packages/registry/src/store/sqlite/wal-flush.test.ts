import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { WalFlush } from './wal-flush.ts';

test('flushes the log, shares one flush among those who wait, and fails all of them when it fails', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'skep-wal-'));
  onTestFinished(() => rm(directory, { recursive: true }));
  await writeFile(join(directory, 'db-wal'), 'x');
  const wal = new WalFlush(join(directory, 'db'));
  const first = wal.flush();
  const second = wal.flush();
  expect(wal.flush()).toBe(second);
  expect(second).not.toBe(first);
  await Promise.all([first, second]);
  await wal.close();
  await wal.close();
  const missing = new WalFlush(join(directory, 'gone'));
  await expect(missing.flush()).rejects.toThrow('ENOENT');
  await missing.close();
});
