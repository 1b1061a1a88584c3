import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { StoredEntry } from '../store/rows.ts';
import { buildBlock } from './block.ts';
import { compareBytes } from '../store/reads/byte-order.ts';
import { KeptPages, type Page } from './kept-pages.ts';
import { decodeCursor, encodeCursor, type Position } from './entry-key.ts';
import {
  listPage,
  pageKey,
  versionPage,
  versionsPage,
  walkPage,
  type PageQuery,
  type Reader,
} from './page.ts';
import { buildSnapshot } from './snapshot.ts';

const VERSIONS = ['1.0.0', '1.2.0', '1.10.0', '2.0.0-beta', 'v3', 'nightly', 'µ'];
const NAMES = ['a/a', 'a/b', 'a.b/c', 'B/x', 'b/x', 'bare', 'z-z/z_z', 'z/z'];

interface Listed {
  readonly servers: readonly {
    readonly server: { readonly name: string; readonly version: string; readonly description: string };
    readonly _meta: Readonly<Record<string, { readonly isLatest: boolean; readonly updatedAt: string }>>;
  }[];
  readonly metadata: { readonly count: number; readonly nextCursor?: string };
}

const entryOf = (name: string, versions: readonly string[], claims = ''): StoredEntry => ({
  kind: 'server',
  namespace: '',
  name,
  claims,
  versions: versions.map((version) => ({
    version,
    title: null,
    description: `${name} 100% does_it`,
    document: JSON.stringify({ name, version, description: `${name} 100% does_it` }),
    official: null,
    createdAt: '2026-01-01T00:00:00.000Z',
    updatedAt: `2026-01-0${1 + (version.length % 9)}T00:00:00.000Z`,
  })),
});

const entries = fc
  .uniqueArray(
    fc.record({
      name: fc.constantFrom(...NAMES),
      claims: fc.constantFrom('', '{"team":["red"]}'),
      versions: fc.uniqueArray(fc.constantFrom(...VERSIONS), { minLength: 1 }),
    }),
    { selector: (entry) => entry.name },
  )
  .map((list) => list.map(({ name, versions, claims }) => entryOf(name, versions, claims)));

/** A registry of these sources, read by somebody who sees claim sets for which `sees` holds. */
function readerOf(sources: readonly (readonly StoredEntry[])[], sees = (_claims: string) => true): Reader {
  const names = sources.map((_, index) => `source-${index}`);
  const blocks = new Map(
    sources.map((list, index) => [`source-${index}`, buildBlock(`source-${index}`, list)]),
  );
  const snapshot = buildSnapshot([{ name: 'r', sources: names, claims: '' }], blocks);
  const view = snapshot.registries.get('r');
  if (view === undefined) throw new Error('no view');
  return {
    kind: 'server',
    view,
    visibility: {
      visible: (claimClass) => sees(snapshot.claimSets[claimClass] ?? ''),
      classes: snapshot.claimSets.flatMap((claims, claimClass) => (sees(claims) ? [claimClass] : [])),
      fingerprint: 'v',
    },
    pages: new KeptPages(),
  };
}

/** The rules written naively: visible, then shadowed, then filtered, then ordered. */
function model(
  sources: readonly (readonly StoredEntry[])[],
  sees: (claims: string) => boolean,
  query: Omit<PageQuery, 'limit'>,
): Position[] {
  const winners = new Map<string, StoredEntry>();
  for (const source of sources) {
    for (const entry of source)
      if (sees(entry.claims) && !winners.has(entry.name)) winners.set(entry.name, entry);
  }
  return [...winners.values()]
    .flatMap(({ name, versions }) => versions.map(({ version }) => ({ name, version })))
    .filter(
      ({ name, version }) =>
        (query.version ?? version) === version &&
        `${name} 100% does_it`.toLowerCase().includes(query.search ?? ''),
    )
    .toSorted((a, b) => compareBytes(a.name, b.name) || compareBytes(a.version, b.version));
}

const text = ({ pieces }: Page): string => Buffer.concat(pieces).toString();
function pageOf(reader: Reader, query: PageQuery): Page {
  const page = listPage(reader, query);
  if (page instanceof Promise) throw new Error('a small page comes at once');
  return page;
}
const read = (reader: Reader, query: PageQuery): Listed => JSON.parse(text(pageOf(reader, query)));
const positions = (page: Listed): Position[] =>
  page.servers.map(({ server: { name, version } }) => ({ name, version }));

function walk(reader: Reader, query: PageQuery, form = (cursor: string) => cursor): Position[] {
  const seen: Position[] = [];
  let next: string | undefined;
  do {
    const page = read(reader, next === undefined ? query : { ...query, after: decodeCursor(form(next)) });
    expect(page.metadata.count).toBe(page.servers.length);
    if (page.metadata.nextCursor !== undefined) expect(page.servers).toHaveLength(query.limit);
    seen.push(...positions(page));
    next = page.metadata.nextCursor;
  } while (next !== undefined);
  return seen;
}

const toStandardBase64 = (cursor: string): string => Buffer.from(cursor, 'base64url').toString('base64');

describe('listPage', () => {
  test('walks to exactly what the rules say, whatever the page size, callers and filters', () => {
    fc.assert(
      fc.property(
        fc.array(entries, { maxLength: 3 }),
        fc.integer({ min: 1, max: 7 }),
        fc.boolean(),
        fc.record(
          { search: fc.constantFrom('b', '%', '_', 'zz'), version: fc.constantFrom(...VERSIONS) },
          { requiredKeys: [] },
        ),
        (sources, limit, privileged, filter) => {
          const sees = (claims: string): boolean => privileged || claims === '';
          const reader = readerOf(sources, sees);
          const expected = model(sources, sees, filter);
          expect(walk(reader, { ...filter, limit })).toEqual(expected);
          expect(walk(reader, { ...filter, limit }, toStandardBase64)).toEqual(expected);
        },
      ),
    );
  });

  test('neither loses nor repeats an item that was there all along while others come and go between pages', () => {
    fc.assert(
      fc.property(entries, entries, fc.integer({ min: 1, max: 5 }), (before, after, limit) => {
        const readers = [readerOf([before]), readerOf([after])];
        const key = ({ name, version }: Position): string => `${name}@${version}`;
        const inBoth = new Set(model([before], () => true, {}).map(key));
        const later = new Set(model([after], () => true, {}).map(key));
        const stable = [...inBoth].filter((item) => later.has(item));
        const seen: string[] = [];
        let next: string | undefined;
        let turn = 0;
        do {
          const reader = readers[turn % 2] ?? readerOf([]);
          turn += 1;
          const page = read(reader, { limit, ...(next === undefined ? {} : { after: decodeCursor(next) }) });
          seen.push(...positions(page).map(key));
          next = page.metadata.nextCursor;
        } while (next !== undefined && turn < 100);
        expect(new Set(seen).size).toBe(seen.length);
        // The walk may end early on a state that has nothing more; up to there nothing stable is missing.
        const last = seen.at(-1);
        const ended = new Set(seen);
        const order = stable.filter((item) => last !== undefined && compareKeys(item, last) <= 0);
        expect(order.filter((item) => !ended.has(item))).toEqual([]);
      }),
    );
  });

  test('gives the empty list for an empty registry', () => {
    expect(text(pageOf(readerOf([]), { limit: 5 }))).toBe('{"servers":[],"metadata":{"count":0}}');
  });

  test('starts after a position that no longer exists', () => {
    const reader = readerOf([[entryOf('a/a', ['1.0.0']), entryOf('c/c', ['1.0.0'])]]);
    expect(positions(read(reader, { limit: 5, after: { name: 'b/gone', version: '9' } }))).toEqual([
      { name: 'c/c', version: '1.0.0' },
    ]);
  });

  test('takes all versions of a name from the first source the caller may see, and its latest with them', () => {
    const high = entryOf('a/a', ['1.0.0', '1.1.0'], '{"team":["red"]}');
    const low = entryOf('a/a', ['0.9.0', '7.0.0']);
    const all = read(readerOf([[high], [low]]), { limit: 9, version: 'latest' });
    expect(positions(all)).toEqual([{ name: 'a/a', version: '1.1.0' }]);
    const some = read(
      readerOf([[high], [low]], (claims) => claims === ''),
      { limit: 9, version: 'latest' },
    );
    expect(positions(some)).toEqual([{ name: 'a/a', version: '7.0.0' }]);
  });
});

const compareKeys = (left: string, right: string): number => {
  const split = (item: string): [string, string] => [
    item.slice(0, item.lastIndexOf('@')),
    item.slice(item.lastIndexOf('@') + 1),
  ];
  const [leftName, leftVersion] = split(left);
  const [rightName, rightVersion] = split(right);
  return compareBytes(leftName, rightName) || compareBytes(leftVersion, rightVersion);
};

describe('versions of one entry', () => {
  const reader = readerOf([[entryOf('a/a', ['1.10.0', '1.2.0', '2.0.0-beta', 'nightly'])]]);

  test('lists them by version string and marks the newest by semantic precedence', () => {
    const page: Listed = JSON.parse(text(versionsPage(reader, 'a/a', { limit: 1000 })));
    expect(
      page.servers.map(({ server, _meta }) => [server.version, Object.values(_meta)[0]?.isLatest]),
    ).toEqual([
      ['1.10.0', false],
      ['1.2.0', false],
      ['2.0.0-beta', true],
      ['nightly', false],
    ]);
  });

  test('finds latest and exact versions and nothing else', () => {
    expect(versionPage(reader, 'a/a', 'latest')?.pieces.join('')).toContain('"version":"2.0.0-beta"');
    expect(versionPage(reader, 'a/a', '1.2.0')?.pieces.join('')).toContain('"version":"1.2.0"');
    expect(versionPage(reader, 'a/a', '1.2')).toBeUndefined();
    expect(versionPage(reader, 'a/', 'latest')).toBeUndefined();
  });

  test('is an empty list for an unknown entry', () => {
    expect(text(versionsPage(reader, 'a/', { limit: 1000 }))).toBe('{"servers":[],"metadata":{"count":0}}');
  });
});

describe('pageKey', () => {
  const textOf = (reader: Reader, query: PageQuery): string => pageKey(reader, query).text;

  test('differs by kind, registry, query and what is visible', () => {
    const one = readerOf([[entryOf('a/a', ['1.0.0'])]]);
    expect(textOf(one, { limit: 5 })).toBe(textOf({ ...one }, { limit: 5 }));
    const keys = [
      textOf(one, { limit: 5 }),
      textOf(one, { limit: 6 }),
      textOf({ ...one, kind: 'skill' }, { limit: 5 }),
      textOf({ ...one, view: { ...one.view, name: 'other' } }, { limit: 5 }),
      textOf({ ...one, visibility: { ...one.visibility, fingerprint: 'w' } }, { limit: 5 }),
      textOf(one, { limit: 5, after: decodeCursor(encodeCursor({ name: 'a', version: '' })) }),
    ];
    expect(new Set(keys).size).toBe(keys.length);
  });
});

const large = (name: string, mebibytes: number): StoredEntry => {
  const [entry] = [entryOf(name, ['1.0.0'])];
  const document = JSON.stringify({
    name,
    version: '1.0.0',
    description: 'x'.repeat(mebibytes * 1024 * 1024),
  });
  return { ...entry, versions: entry.versions.map((version) => ({ ...version, document })) };
};

describe('what a page may cost', () => {
  test('ends a page before four megabytes, and its cursor leads to what did not fit', () => {
    const names = ['a/a', 'a/b', 'a/c', 'a/d', 'a/e'];
    const reader = readerOf([names.map((name) => large(name, name === 'a/d' ? 5 : 1.5))]);
    const sizes: number[] = [];
    const seen: string[] = [];
    let after: Position | undefined;
    do {
      const page = read(reader, { limit: 1000, ...(after === undefined ? {} : { after }) });
      sizes.push(page.servers.length);
      seen.push(...positions(page).map(({ name }) => name));
      after = page.metadata.nextCursor === undefined ? undefined : decodeCursor(page.metadata.nextCursor);
    } while (after !== undefined);
    expect(seen).toEqual(names);
    expect(sizes).toEqual([2, 1, 1, 1]);
  });

  test('ends a page of versions before four megabytes too', () => {
    const [entry] = [entryOf('a/a', ['1.0.0', '2.0.0', '3.0.0', '4.0.0'])];
    const document = JSON.stringify({
      name: 'a/a',
      version: '1',
      description: 'x'.repeat(1024 * 1024 * 1.5),
    });
    const versions = entry.versions.map((version) => ({ ...version, document }));
    const reader = readerOf([[{ ...entry, versions }]]);
    const first: Listed = JSON.parse(text(versionsPage(reader, 'a/a', { limit: 1000 })));
    expect(first.servers).toHaveLength(2);
    const after = decodeCursor(first.metadata.nextCursor ?? '');
    expect(after.version).toBe('2.0.0');
    const second: Listed = JSON.parse(text(versionsPage(reader, 'a/a', { limit: 9, after })));
    expect([second.servers.length, second.metadata.nextCursor]).toEqual([2, undefined]);
  });

  test('gives others their turn while a search compares much, and ends the page where it would be too much', () => {
    const reader = readerOf([Array.from({ length: 50 }, (_, at) => entryOf(`a/${at}`, ['1.0.0']))]);
    const query = { limit: 5, search: 'no such text' };
    const bounds = { turn: 1000, comparisons: 10_000 };
    const seen: (string | undefined)[] = [];
    let after: Position | undefined;
    let turns = 0;
    do {
      const walk = walkPage(reader, { ...query, ...(after === undefined ? {} : { after }) }, bounds);
      let page = walk();
      for (; page === undefined; page = walk()) turns += 1;
      expect(page.items).toEqual([]);
      after = page.next;
      seen.push(after?.name);
    } while (after !== undefined);
    expect(turns).toBeGreaterThan(10);
    expect(seen.length).toBeGreaterThan(1);
    expect(new Set(seen).size).toBe(seen.length);
  });

  test('answers a costly search as a promise, so that it cannot hold what others ask', async () => {
    const entries = Array.from({ length: 60 }, (_, at) => {
      const entry = entryOf(`a/${at}`, ['1.0.0']);
      const versions = entry.versions.map((version) => ({ ...version, description: 'a'.repeat(900_000) }));
      return { ...entry, versions };
    });
    const search = `${'a'.repeat(99)}b${'a'.repeat(100)}`;
    const page = listPage(readerOf([entries]), { limit: 5, search });
    expect(page).toBeInstanceOf(Promise);
    expect(text(await page)).toBe('{"servers":[],"metadata":{"count":0}}');
  });

  test('has one line for all costly searches, and refuses further ones when it is long', async () => {
    const entries = Array.from({ length: 60 }, (_, at) => {
      const entry = entryOf(`a/${at}`, ['1.0.0']);
      const versions = entry.versions.map((version) => ({ ...version, description: 'a'.repeat(900_000) }));
      return { ...entry, versions };
    });
    const reader = readerOf([entries]);
    const search = 'z'.repeat(200);
    const pages = Array.from({ length: 66 }, async () => listPage(reader, { limit: 5, search }));
    const ends = await Promise.allSettled(pages);
    expect(ends.filter(({ status }) => status === 'rejected')).toHaveLength(2);
    expect(ends.at(-1)).toMatchObject({ reason: { code: 'registry/not-ready' } });
  });

  test('searches the first 4096 characters of a description', () => {
    const described = (description: string): Reader => {
      const entry = entryOf('a/a', ['1.0.0']);
      return readerOf([[{ ...entry, versions: entry.versions.map((one) => ({ ...one, description })) }]]);
    };
    const found = (description: string): number =>
      read(described(description), { limit: 5, search: 'needle' }).metadata.count;
    expect(found(`${'x'.repeat(4090)}needle`)).toBe(1);
    expect(found(`${'x'.repeat(4091)}needle`)).toBe(0);
  });

  test('looks at as many names whether nothing is hidden from a caller or very much', () => {
    const looks = (hidden: number, query: Omit<PageQuery, 'limit'>): number => {
      const secret = '{"team":["red"]}';
      const mine = [
        ...Array.from({ length: 20 }, (_, at) => entryOf(`m/${at}`, ['1.0.0'], '{"team":["blue"]}')),
        ...Array.from({ length: 20 }, (_, at) => entryOf(`n/${at}`, ['1.0.0'])),
      ];
      const others = Array.from({ length: hidden }, (_, at) =>
        entryOf(`${'amz'[at % 3]}/h${at}`, ['1'], secret),
      );
      const reader = readerOf([mine, others], (claims) => claims !== secret);
      let asked = 0;
      const visible = (claimClass: number): boolean => {
        asked += 1;
        return reader.visibility.visible(claimClass);
      };
      walk({ ...reader, visibility: { ...reader.visibility, visible } }, { limit: 7, ...query });
      return asked;
    };
    for (const query of [{}, { search: 'nothing' }, { after: { name: 'm/5', version: '1.0.0' } }]) {
      const none = looks(0, query);
      expect(none).toBeGreaterThan(0);
      expect(looks(10, query)).toBe(none);
      expect(looks(2000, query)).toBe(none);
    }
  });
});
