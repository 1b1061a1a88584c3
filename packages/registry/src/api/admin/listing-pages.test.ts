import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import type { NewEntry } from '../../store/rows.ts';
import { replacementOf, serverOf, versionOf } from '../../store/contract/fixture.ts';
import { type AdminUnderTest, adminUnderTest, CONFIG_SOURCES } from './admin.fixture.ts';

const COUNT = 40;

function skillOf(namespace: string): NewEntry {
  return { kind: 'skill', namespace, name: 'io.a/s10', claims: '', versions: [versionOf('1')] };
}

/** Sources that hold partly the same names and versions. */
const HELD: Readonly<Record<string, readonly NewEntry[]>> = {
  catalog: [
    ...Array.from({ length: COUNT }, (_, index) => serverOf(`io.a/s${index}`, { '1': '{}', '2': '{}' })),
    skillOf('n1'),
    skillOf('n2'),
    { ...skillOf('n1'), kind: 'plugin' },
  ],
  foreign: [serverOf('io.a/s10', { '1': '{}', '2': '{}' }), skillOf('n0')],
};

describe('a page of a listing', () => {
  let admin: AdminUnderTest;
  beforeAll(async () => {
    admin = await adminUnderTest({
      sources: CONFIG_SOURCES,
      registries: [{ name: 'both', sources: ['catalog', 'foreign'], claims: '' }],
    });
    for (const [source, entries] of Object.entries(HELD)) {
      await admin.store.replaceEntries(replacementOf(source, entries, 'T1'));
    }
  });
  afterAll(() => admin.close());

  const pageOf = async (url: string): Promise<{ entries: object[]; nextCursor?: string }> =>
    (await admin.send('GET', url)).json();

  const LISTINGS = ['/v1/sources/catalog/entries', '/v1/registries/both/entries'];

  test.each(LISTINGS)(
    'of %s takes no document and no more rows from the store than it shows',
    async (url) => {
      const { store } = admin;
      const documents = vi.spyOn(store, 'readEntries');
      const rows = [vi.spyOn(store, 'listEntries'), vi.spyOn(store, 'listVersions')];
      onTestFinished(() => void vi.restoreAllMocks());
      const { entries, nextCursor } = await pageOf(`${url}?limit=3`);
      expect([entries.length, nextCursor !== undefined]).toEqual([3, true]);
      expect(documents).not.toHaveBeenCalled();
      const taken = await Promise.all(rows.flatMap(({ mock }) => mock.results.map(({ value }) => value)));
      expect(taken.length).toBeGreaterThan(0);
      for (const part of taken) expect(part.length).toBeLessThanOrEqual(4);
    },
  );

  test.each(LISTINGS)('of %s follows the one before, whatever its size', async (url) => {
    const { entries: all } = await pageOf(url);
    expect(all.length).toBeGreaterThan(COUNT);
    for (const limit of [1, 2, 7]) {
      const found: object[] = [];
      for (let cursor: string | undefined = ''; cursor !== undefined;) {
        const page: Awaited<ReturnType<typeof pageOf>> = await pageOf(
          `${url}?limit=${limit}&cursor=${cursor}`,
        );
        found.push(...page.entries);
        cursor = page.nextCursor;
      }
      expect(found).toEqual(all);
    }
  });

  test.each(LISTINGS)(
    'of %s is refused behind a cursor with a character that no text of a database has',
    async (url) => {
      const cursor = Buffer.from(JSON.stringify(['MCP', '', '\0'])).toString('base64url');
      expect((await admin.send('GET', `${url}?cursor=${cursor}`)).statusCode).toBe(400);
    },
  );
});
