import { DatabaseSync } from 'node:sqlite';
import { Kysely, type RawBuilder, sql } from 'kysely';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { allowed, publishOf } from '../contract/fixture.ts';
import { markWork, publishWork } from './entry-writes.ts';
import { type EntryWork, ManagedEntries } from './managed-entries.ts';
import { NEWEST_SCHEMA } from '../schema/migrate.ts';
import { migrateSqlite } from '../sqlite/migrate.ts';
import { nodeSqliteDialect } from '../sqlite/dialect.ts';
import { among, commitBatch } from '../sqlite/sqlite.ts';
import type { Tables } from '../schema/tables.ts';

describe('ManagedEntries', () => {
  let db: Kysely<Tables>;
  let statements: number;
  beforeEach(async () => {
    const database = new DatabaseSync(':memory:', { enableForeignKeyConstraints: true });
    await migrateSqlite(database, () => NEWEST_SCHEMA);
    database.exec(`insert into source (name, kind) values ('internal', 'managed')`);
    statements = 0;
    db = new Kysely<Tables>({ dialect: nodeSqliteDialect(database), log: () => void (statements += 1) });
  });
  afterEach(() => db.destroy());

  async function publishTogether(count: number, prefix: string): Promise<number> {
    statements = 0;
    await perform(
      Array.from({ length: count }, (_, index) => publishWork(publishOf(`${prefix}/${index}`, '1'), allowed)),
    );
    return statements;
  }

  async function perform(works: readonly EntryWork<unknown>[]): Promise<void> {
    const database = {
      among,
      commitBatch,
      beginManaged: async <Row>(connection: Kysely<Tables>, read: RawBuilder<Row>) => {
        await sql`begin`.execute(connection);
        return (await read.execute(connection)).rows;
      },
    };
    const now = '2026-01-01T00:00:00.000Z';
    const managed = await ManagedEntries.begin({ db, database, now, committing: () => {} }, works);
    for (const { act } of works) await act(managed);
    await managed.commit();
  }

  test('publishes sixty-four entries with as many statements as one', async () => {
    expect(await publishTogether(1, 'one')).toBe(7);
    expect(await publishTogether(64, 'many')).toBe(7);
    const rows = await db.selectFrom('entry_version').select('name').execute();
    expect(rows).toHaveLength(65);
  });

  test('marks all versions of an entry with as many statements as one', async () => {
    const address = { kind: 'server', namespace: '', name: 'a/a' } as const;
    const markAll = async (): Promise<number> => {
      statements = 0;
      await perform([
        markWork({ address, mark: { status: 'deprecated' } }, ([entry]) => {
          if (entry === undefined) throw new Error('the entry is there');
          return entry;
        }),
      ]);
      return statements;
    };
    await perform([publishWork(publishOf('a/a', '0'), allowed)]);
    const one = await markAll();
    const more = Array.from({ length: 200 }, (_, index) => publishOf('a/a', String(index + 1)));
    await perform(more.map((request) => publishWork(request, allowed)));
    expect(await markAll()).toBe(one);
    const rows = await db.selectFrom('entry_version').select('official').execute();
    expect(rows.filter(({ official }) => official?.includes('deprecated') === true)).toHaveLength(201);
  });

  test('takes no more versions and bytes of one entry than each further write about it can read', async () => {
    const version = (name: string, number: number, length = 0) => {
      const request = publishOf(name, String(number));
      const document = JSON.stringify({ text: 'x'.repeat(length) });
      return publishWork({ ...request, version: { ...request.version, document } }, allowed);
    };
    await perform(Array.from({ length: 1000 }, (_, number) => version('many/many', number)));
    await expect(perform([version('many/many', 1000)])).rejects.toMatchObject({
      code: 'access/version-exists',
      message: expect.stringContaining('as many versions as an entry may have'),
    });
    await sql`rollback`.execute(db);
    await perform([version('large/large', 1, 8_000_000), version('large/large', 2, 8_000_000)]);
    await expect(perform([version('large/large', 3, 8_000_000)])).rejects.toThrow('16777216 bytes');
  });
});
