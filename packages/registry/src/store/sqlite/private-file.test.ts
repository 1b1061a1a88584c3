import { chmod, mkdtemp, rm, stat, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { silentLog } from '@skep/core/log/log.ts';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { systemClock } from '@skep/core/time/clock.ts';
import { allowed, publishOf, sourceOf } from '../contract/fixture.ts';
import { NEWEST_SCHEMA } from '../schema/migrate.ts';
import { migrateStore } from '../open-store.ts';
import { openSqlite } from './sqlite.ts';

let directory: string;
let umask: number;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'skep-store-'));
  umask = process.umask(0o022);
});
afterEach(async () => {
  process.umask(umask);
  await rm(directory, { recursive: true });
});

const modeOf = async (path: string): Promise<string> => ((await stat(path)).mode & 0o777).toString(8);

test('other users of the machine can read neither the embedded store nor what SQLite keeps beside it', async () => {
  const path = join(directory, 'registry.db');
  const store = await openSqlite({ path, clock: systemClock, log: silentLog });
  await store.reconcile({ sources: [sourceOf('internal', 'managed')], registries: [] });
  await store.publish(publishOf('io.hidden/one', '1'), allowed);
  for (const companion of ['', '-wal', '-shm']) expect(await modeOf(`${path}${companion}`)).toBe('600');
  await store.close();
});

test('a store that is made by migrating, or through a link that leads nowhere yet, is its owner’s too', async () => {
  const made = join(directory, 'migrated.db');
  await migrateStore({ kind: 'sqlite', path: made }, () => NEWEST_SCHEMA);
  expect(await modeOf(made)).toBe('600');
  const target = join(directory, 'target.db');
  await symlink(target, join(directory, 'link.db'));
  await (await openSqlite({ path: join(directory, 'link.db'), clock: systemClock, log: silentLog })).close();
  expect(await modeOf(target)).toBe('600');
});

test('warns of a store that others may read, and leaves its mode alone', async () => {
  const path = join(directory, 'registry.db');
  await (await openSqlite({ path, clock: systemClock, log: silentLog })).close();
  await chmod(path, 0o644);
  const warn = vi.fn();
  const store = await openSqlite({ path, clock: systemClock, log: { ...silentLog, warn } });
  expect(warn).toHaveBeenCalledWith({ file: path, mode: '0644' }, expect.stringContaining('chmod 0600'));
  expect(await modeOf(path)).toBe('644');
  await store.close();
});
