import type { Entry } from '@skep/core/catalog/entry.ts';
import { readCatalogue } from '@skep/core/catalog/registry-file.ts';
import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import type { FilterConfig } from './filter-shape.ts';
import { compileFilter, filterKey, tagsOf } from './filter.ts';

const PUBLISHER = 'io.modelcontextprotocol.registry/publisher-provided';

/** Entries as a catalogue gives them. */
function entriesOf(data: object): readonly Entry[] {
  const text = JSON.stringify({ version: '1.0.0', meta: { last_updated: '2026-01-01T00:00:00Z' }, data });
  const { entries, skipped } = readCatalogue(text, { label: 'test' });
  expect(skipped).toEqual([]);
  return entries;
}

function server(name: string, blocks: object = {}): object {
  return { name, version: '1.0.0', description: 'x', _meta: { [PUBLISHER]: blocks } };
}

const tagged = (name: string, ...tags: readonly unknown[]): object =>
  server(name, { 'io.github.stacklok': { image: { tags } } });

const CATALOGUE = entriesOf({
  servers: [
    tagged('io.acme/weather', 'official', 'read-only'),
    tagged('io.acme/deprecated-mail', 'official'),
    tagged('com.other/shell', 'dangerous', 'official'),
    server('com.other/plain'),
  ],
  skills: [{ namespace: 'io.acme', name: 'review', version: '1.0.0', description: 'x' }],
});

function kept(config: FilterConfig): readonly string[] {
  return CATALOGUE.filter(compileFilter(config)).map(({ name }) => name);
}

const ALL = ['io.acme/weather', 'io.acme/deprecated-mail', 'com.other/shell', 'com.other/plain', 'review'];

test.each<[string, FilterConfig, readonly string[]]>([
  ['no rule keeps everything', {}, ALL],
  ['empty lists are no rule', { names: { include: [], exclude: [] }, tags: {} }, ALL],
  [
    'one included name is enough',
    { names: { include: ['*/weather', '*/plain'] } },
    ['io.acme/weather', 'com.other/plain'],
  ],
  [
    'exclusion wins over inclusion',
    { names: { include: ['io.acme/*'], exclude: ['*/deprecated-*'] } },
    ['io.acme/weather', 'review'],
  ],
  ['a skill goes by namespace and name', { names: { include: ['io.acme/review'] } }, ['review']],
  [
    'an included tag must be there',
    { tags: { include: ['read-only', 'dangerous'] } },
    ['io.acme/weather', 'com.other/shell', 'review'],
  ],
  [
    'an excluded tag must not be there',
    { tags: { exclude: ['dangerous'] } },
    ['io.acme/weather', 'io.acme/deprecated-mail', 'com.other/plain', 'review'],
  ],
  ['tags are exact, not patterns', { tags: { include: ['*'] } }, ['review']],
  [
    'both rules must pass',
    { names: { include: ['com.*'] }, tags: { include: ['official'] } },
    ['com.other/shell'],
  ],
])('%s', (_rule, config, names) => {
  expect(kept(config)).toEqual(names);
});

test('an invalid pattern is a configuration error', () => {
  expect(() => compileFilter({ names: { exclude: ['[a'] } })).toThrow(
    expect.objectContaining({ code: 'config/invalid' }),
  );
});

test('tags are collected over every namespace and key, and what is no text is passed over', () => {
  const [entry] = entriesOf({
    servers: [
      server('io.acme/x', {
        'io.github.stacklok': {
          one: { tags: ['a', 1, null] },
          two: { tags: ['b', 'a'] },
          three: { tags: 'c' },
        },
        'io.acme': { any: { tags: ['d'], nested: { tags: ['e'] } } },
        tags: ['f'],
        odd: null,
      }),
    ],
  });
  expect(entry?.kind === 'server' ? [...tagsOf(entry.document)] : []).toEqual(['a', 'b', 'd']);
});

const names = fc.uniqueArray(fc.constantFrom('io.acme/*', 'com.*', '*/weather', '*il'), { maxLength: 3 });
const tags = fc.uniqueArray(fc.constantFrom('official', 'dangerous', 'read-only', 'none'), { maxLength: 3 });

test('the key of a filter tells different filters apart and ignores order and repetition', () => {
  const rule = (texts: fc.Arbitrary<string[]>) => fc.record({ include: texts, exclude: texts });
  fc.assert(
    fc.property(rule(names), rule(tags), rule(names), (one, two, three) => {
      const shuffled = { include: [...one.include, ...one.include].toReversed(), exclude: one.exclude };
      expect(filterKey({ names: one, tags: two })).toBe(filterKey({ names: shuffled, tags: two }));
      const sameRule = filterKey({ names: one }) === filterKey({ names: three });
      if (sameRule) expect(kept({ names: one })).toEqual(kept({ names: three }));
      expect(filterKey({ names: one, tags: two }) === filterKey({ names: two, tags: one })).toBe(
        filterKey({ names: one }) === filterKey({ names: two }),
      );
    }),
  );
});

test('an entry is kept exactly when the documented rules say so', () => {
  fc.assert(
    fc.property(names, names, tags, tags, (nameIn, nameOut, tagIn, tagOut) => {
      const config = {
        names: { include: nameIn, exclude: nameOut },
        tags: { include: tagIn, exclude: tagOut },
      };
      const alone = (key: 'names' | 'tags', texts: readonly string[]) =>
        texts.length === 0
          ? []
          : kept({ [key]: { include: texts } }).filter((name) => key === 'names' || name !== 'review');
      const expected = ALL.filter((name) => {
        if (alone('names', nameOut).includes(name) || alone('tags', tagOut).includes(name)) return false;
        if (nameIn.length > 0 && !alone('names', nameIn).includes(name)) return false;
        return name === 'review' || tagIn.length === 0 || alone('tags', tagIn).includes(name);
      });
      expect(kept(config)).toEqual(expected);
    }),
  );
});
