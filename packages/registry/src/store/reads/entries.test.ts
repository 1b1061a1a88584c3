import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { silentLog } from '@skep/core/log/log.ts';
import { Kysely } from 'kysely';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { systemClock } from '@skep/core/time/clock.ts';
import { versionRows } from './entries.ts';
import { nodeSqliteDialect } from '../sqlite/dialect.ts';
import { openSqlite } from '../sqlite/sqlite.ts';
import type { Tables } from '../schema/tables.ts';

let directory: string;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'skep-store-'));
});
afterEach(() => rm(directory, { recursive: true }));

test('reads a source in the order of an index, so that SQLite sorts no documents', async () => {
  const path = join(directory, 'registry.db');
  const store = await openSqlite({ path, clock: systemClock, log: silentLog });
  await store.close();
  const db = new Kysely<Tables>({ dialect: nodeSqliteDialect(new DatabaseSync(path)) });
  const { sql, parameters } = versionRows(db, 'internal').compile();
  await db.destroy();
  const database = new DatabaseSync(path);
  const plan = database.prepare(`explain query plan ${sql}`).all(...parameters.map(String));
  database.close();
  const steps = plan.map(({ detail }) => String(detail));
  expect(steps.join('\n')).toContain('USING INDEX');
  expect(steps.join('\n')).not.toContain('ORDER BY');
});
