import { describe, expect, test } from 'vitest';
import type { ServerEntry } from './entry.ts';
import { findServer, newestPerName } from './find.ts';
import { readCatalogue } from './registry-file.ts';

function servers(...list: [name: string, version: string, more?: object][]): ServerEntry[] {
  const documents = list.map(([name, version, more]) => ({
    name,
    version,
    description: 'Says things',
    ...more,
  }));
  return readCatalogue(JSON.stringify(documents), { label: 'test' }).entries.flatMap((entry) =>
    entry.kind === 'server' ? [entry] : [],
  );
}

describe('findServer', () => {
  const all = servers(
    ['io.acme/weather', '1.9.0'],
    ['io.acme/weather', '1.10.0'],
    ['io.acme/git', '1.0.0'],
    ['io.other/git', '1.0.0'],
    ['git-x', '1'],
    ['io.acme/time', '1'],
    ['time', '2'],
  );

  test.each([
    ['io.acme/weather', 'io.acme/weather', '1.10.0'],
    ['weather', 'io.acme/weather', '1.10.0'],
    ['io.acme/git', 'io.acme/git', '1.0.0'],
    ['time', 'time', '2'],
  ])('%s means %s', (query, name, version) => {
    expect(findServer(all, query)).toMatchObject({ name, version });
  });

  test.each(['nothing', 'eather', 'acme/weather', 'Weather', 'io.acme/', ''])('%j means nothing', (query) => {
    expect(findServer(all, query)).toBeUndefined();
  });

  test('lists the candidates when a last segment is ambiguous', () => {
    expect(() => findServer(all, 'git')).toThrow(
      expect.objectContaining({
        code: 'catalog/ambiguous-name',
        message: 'more than one server matches "git": io.acme/git, io.other/git',
      }),
    );
  });

  test('lists five candidates and counts the rest', () => {
    const many = servers(...Array.from({ length: 7 }, (_, i): [string, string] => [`io.n${i}/x`, '1']));
    expect(() => findServer(many, 'x')).toThrow(/io\.n4\/x and 2 more/);
  });
});

test('newestPerName keeps one version of each name, in order of appearance', () => {
  const all = servers(['a/b', '1.0.0'], ['a/c', '1.0.0'], ['a/b', '2.0.0-beta'], ['a/b', '1.5.0']);
  expect(newestPerName(all).map(({ name, version }) => `${name}@${version}`)).toEqual([
    'a/b@2.0.0-beta',
    'a/c@1.0.0',
  ]);
});
