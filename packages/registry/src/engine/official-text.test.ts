import type { Entry } from '@skep/core/catalog/entry.ts';
import { OFFICIAL_META } from '@skep/core/catalog/official-meta.ts';
import { readCatalogue } from '@skep/core/catalog/registry-file.ts';
import { PUBLISHER_META } from '@skep/core/catalog/extension-summary.ts';
import { expect, test } from 'vitest';
import { officialText } from './official-text.ts';

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
