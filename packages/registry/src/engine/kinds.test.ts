import { OFFICIAL_META, type Entry } from '@skep/core/catalog/entry.ts';
import { PUBLISHER_META } from '@skep/core/catalog/extension-summary.ts';
import { readCatalogue } from '@skep/core/catalog/registry-file.ts';
import { describe, expect, test } from 'vitest';
import { officialText, serverMeta } from './kinds.ts';

const seen = { createdAt: '2026-01-01T00:00:00.000Z', updatedAt: '2026-02-01T00:00:00.000Z' };

describe('serverMeta', () => {
  test('fills the official block from the store when the source said nothing', () => {
    expect(JSON.parse(serverMeta({ official: null, ...seen }, true).text)).toEqual({
      [OFFICIAL_META]: {
        status: 'active',
        publishedAt: seen.createdAt,
        updatedAt: seen.updatedAt,
        statusChangedAt: seen.createdAt,
        isLatest: true,
      },
    });
  });

  test('tells versions apart that differ in one thing only', () => {
    const other = '2026-03-01T00:00:00Z';
    const asked = [
      [{ official: null, ...seen }, true],
      [{ official: null, ...seen }, false],
      [{ official: null, ...seen, createdAt: other }, false],
      [{ official: null, ...seen, updatedAt: other }, false],
      [{ official: '{"status":"deleted"}', ...seen }, true],
      [{ official: null, ...seen }, true],
    ] as const;
    const given = asked.map(([input, isLatest]) => {
      const { text, updatedAt } = serverMeta(input, isLatest);
      const { status, publishedAt, isLatest: said } = JSON.parse(text)[OFFICIAL_META];
      return [status, publishedAt, updatedAt, said];
    });
    const [created, updated] = [seen.createdAt, '2026-02-01T00:00:00'];
    expect(given).toEqual([
      ['active', created, updated, true],
      ['active', created, updated, false],
      ['active', other, updated, false],
      ['active', created, '2026-03-01T00:00:00', false],
      ['deleted', created, updated, true],
      ['active', created, updated, true],
    ]);
  });

  test('keeps what the source said, also members nobody knows, and decides only isLatest', () => {
    const given = {
      status: 'deprecated',
      publishedAt: '2025-05-01T00:00:00Z',
      updatedAt: '2025-06-01T00:00:00.123456Z',
      isLatest: true,
      serverId: 'abc',
    };
    const { text, updatedAt } = serverMeta({ official: JSON.stringify(given), ...seen }, false);
    expect(JSON.parse(text)).toEqual({
      [OFFICIAL_META]: { ...given, statusChangedAt: '2025-05-01T00:00:00Z', isLatest: false },
    });
    expect(updatedAt).toBe('2025-06-01T00:00:00.123456');
  });

  test.each([
    [{ status: null, publishedAt: null, updatedAt: null, statusChangedAt: null }, 'active'],
    [{ status: 'burning', publishedAt: 'Jan 1 2026', updatedAt: '2026', statusChangedAt: 'x' }, 'active'],
    [{ status: 'Deprecated' }, 'deprecated'],
    [{ status: 'deleted' }, 'deleted'],
  ])('says %j in words that clients understand', (given, status) => {
    const { text, updatedAt } = serverMeta({ official: JSON.stringify(given), ...seen }, true);
    expect(JSON.parse(text)[OFFICIAL_META]).toEqual({
      status,
      publishedAt: seen.createdAt,
      updatedAt: seen.updatedAt,
      statusChangedAt: seen.createdAt,
      isLatest: true,
    });
    expect(updatedAt).toBe('2026-02-01T00:00:00');
  });

  test('falls back to the store when the source gave an unreadable time', () => {
    const official = JSON.stringify({ updatedAt: 'yesterday' });
    expect(serverMeta({ official, ...seen }, true).updatedAt).toBe('2026-02-01T00:00:00');
  });
});

function only(catalogue: object): Entry {
  const [entry] = readCatalogue(JSON.stringify(catalogue), { label: 'a' }).entries;
  if (entry === undefined) throw new Error('no entry');
  return entry;
}

function textFor(extension: unknown, official?: object): string | null {
  const server = {
    name: 'a/b',
    version: '1.0.0',
    description: 'x',
    _meta: { [PUBLISHER_META]: { 'io.github.stacklok': { 'ghcr.io/a/b': extension } } },
  };
  return officialText(only({ servers: [{ server, _meta: { [OFFICIAL_META]: official } }] }));
}

test.each<[extension: unknown, official: object | undefined, expected: object | null]>([
  [{}, undefined, null],
  [{ status: 'active' }, undefined, null],
  [{ status: 'Deprecated' }, undefined, { status: 'deprecated' }],
  [{ status: 'deprecated' }, { status: 'active' }, { status: 'active' }],
  [{ status: 'deprecated' }, { serverId: 'x' }, { serverId: 'x', status: 'deprecated' }],
  [{ status: 'deprecated' }, { status: null }, { status: 'deprecated' }],
  ['nonsense', { status: 'deleted' }, { status: 'deleted' }],
])('an extension %j and an official block %j are kept as %j', (extension, official, expected) => {
  expect(JSON.parse(textFor(extension, official) ?? 'null')).toEqual(expected);
});

test('a skill has none', () => {
  const skill = { namespace: 'io.a', name: 'skill', version: '1', description: 'x', status: 'deprecated' };
  expect(officialText(only({ data: { servers: [], skills: [skill] } }))).toBeNull();
});
