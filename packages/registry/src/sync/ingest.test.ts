import { OFFICIAL_META } from '@skep/core/catalog/entry.ts';
import { describe, expect, test } from 'vitest';
import { DEFAULT_LIMITS, type Limits } from '../shape/limits.ts';
import { ingest, type IngestInput } from './ingest.ts';

// What becomes of a catalogue on its way into the store (docs/behaviour/registry.md#catalogue-formats). The formats
// themselves: core/catalog.

const server = (name: string, version = '1.0.0') => ({ name, version, description: `Serves ${name}` });
const registryFile = (data: object): object => ({
  version: '1.0.0',
  meta: { last_updated: '2026-01-01T00:00:00Z' },
  data,
});
const limited = (limits: Partial<Limits>): Partial<IngestInput> => ({
  limits: { ...DEFAULT_LIMITS, ...limits },
});
const read = (catalogue: unknown, options: Partial<IngestInput> = {}) =>
  ingest({ label: 'c.json', bytes: Buffer.from(JSON.stringify(catalogue)), ...options });

const CATALOGUES: Readonly<Record<string, unknown>> = {
  'registry-file': registryFile({ servers: [server('a/b')] }),
  'official-list': { servers: [{ server: server('a/b'), _meta: {} }] },
  'server-array': [server('a/b')],
  'server-json': server('a/b'),
  'toolhive-native': { servers: { b: { image: 'ghcr.io/a/b', description: 'x' } } },
};

describe('the format of a source', () => {
  test.each(Object.keys(CATALOGUES))(
    'is told by the file when the configuration does not say it: %s',
    (format) => {
      const { entries, report } = read(CATALOGUES[format]);
      expect(entries).toHaveLength(1);
      expect(report).toMatchObject({ format, entries: { server: 1, skill: 0, plugin: 0 } });
    },
  );

  test.each([
    ['toolhive', ['registry-file', 'toolhive-native']],
    ['upstream', ['registry-file', 'official-list', 'server-array', 'server-json']],
  ] as const)('"%s" takes %j and nothing else', (format, taken) => {
    for (const [name, catalogue] of Object.entries(CATALOGUES)) {
      const attempt = () => read(catalogue, { format }).entries;
      if (taken.some((candidate) => candidate === name)) expect(attempt()).toHaveLength(1);
      else {
        expect(attempt).toThrow(
          expect.objectContaining({
            code: 'catalog/wrong-shape',
            message: `"c.json" is a ${name} file, which "format: ${format}" does not take`,
          }),
        );
      }
    }
  });
});

test('versions of one name are one entry, with the claims of the source; kinds and namespaces are told apart', () => {
  const skill = (namespace: string) => ({ namespace, name: 'same', version: '1', description: 'x' });
  const data = {
    servers: [server('same'), server('a/b', '2.0.0'), server('a/b')],
    skills: [skill('io.a'), skill('io.b')],
    plugins: [skill('io.a')],
  };
  const { entries, report } = read(registryFile(data), { claims: '{"org":["acme"]}' });
  expect(
    entries.map(({ kind, namespace, name, claims, versions }) => [
      [kind, namespace, name].join(' '),
      claims,
      versions.map(({ version }) => version).join(),
    ]),
  ).toEqual(
    [
      ['server  same', '1.0.0'],
      ['server  a/b', '2.0.0,1.0.0'],
      ['skill io.a same', '1'],
      ['skill io.b same', '1'],
      ['plugin io.a same', '1'],
    ].map(([identity, versions]) => [identity, '{"org":["acme"]}', versions]),
  );
  expect(report).toMatchObject({
    entries: { server: 2, skill: 2, plugin: 1 },
    versions: { server: 3, skill: 2, plugin: 1 },
  });
});

test('what another registry says about a version is kept beside it', () => {
  const official = { status: 'deprecated', publishedAt: '2026-01-01T00:00:00Z' };
  const item = { server: server('a/b'), _meta: { [OFFICIAL_META]: official } };
  const [entry] = read({ servers: [item] }).entries;
  expect(JSON.parse(entry?.versions[0]?.official ?? '')).toEqual(official);
});

test('a catalogue of more bytes than allowed is refused', () => {
  const { length } = JSON.stringify([server('a/one')]);
  expect(read([server('a/one')], limited({ maxCatalogueSize: length })).entries).toHaveLength(1);
  expect(() => read([server('a/one')], limited({ maxCatalogueSize: length - 1 }))).toThrow(
    expect.objectContaining({ code: 'catalog/too-large' }),
  );
});

test('invalid entries are left out and named, up to the share that makes the whole catalogue doubtful', () => {
  const broken = { name: 'a/broken', version: 'latest', description: 'x' };
  const mixed = [server('a/one'), broken, server('a/two'), broken];
  const { entries, report } = read(mixed);
  expect(entries.map(({ name }) => name)).toEqual(['a/one', 'a/two']);
  expect(report).toMatchObject({ skippedTotal: 2, skipped: [{ name: 'a/broken', version: 'latest' }, {}] });
  expect(() => read(mixed, limited({ maxInvalidShare: 0.49 }))).toThrow(
    expect.objectContaining({ code: 'catalog/mostly-invalid' }),
  );
  expect(read([broken], limited({ maxInvalidShare: 1 })).entries).toEqual([]);
});

test('a filter leaves entries out, which are counted; those that are not valid count as such', () => {
  const filter = { names: { exclude: ['a/*'] } };
  const { entries, report } = read([server('a/one'), server('b/two'), { name: 'a/x' }], { filter });
  expect(entries.map(({ name }) => name)).toEqual(['b/two']);
  expect(report).toMatchObject({ filtered: 1, skippedTotal: 1, entries: { server: 1 } });
});

test('only a list of another registry may be empty', () => {
  const empty = { servers: [] };
  expect(() => read(empty)).toThrow(expect.objectContaining({ code: 'catalog/empty' }));
  expect(read(empty, { mayBeEmpty: true })).toMatchObject({ entries: [], report: { skippedTotal: 0 } });
  expect(() => read({ error: 'no' }, { mayBeEmpty: true })).toThrow(
    expect.objectContaining({ code: 'catalog/wrong-shape' }),
  );
});

describe('a version that is too large', () => {
  const limits = { maxDocumentSize: 200, maxDescriptionSize: 20 };
  test.each([
    ['description', 'x'.repeat(21), 'the description has 21 bytes, at most 20 are allowed'],
    ['document', 'x', 'the document has 244 bytes, at most 200 are allowed'],
  ])('is left out with the reason, and the others stay: %s', (what, description, reason) => {
    const large = {
      ...server('a/large'),
      description,
      ...(what === 'document' ? { more: 'y'.repeat(180) } : {}),
    };
    const { entries, report } = read([server('a/b'), large], limited(limits));
    expect(entries.map(({ name }) => name)).toEqual(['a/b']);
    expect(report.skipped).toEqual([{ name: 'a/large', version: '1.0.0', reason }]);
  });
});
