import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { resolve } from 'node:path';
import { describe, expect, test } from 'vitest';
import { entryKey } from './entry.ts';
import { readCatalogue, type Catalogue } from './registry-file.ts';

// Real catalogues, where they are present beside the repository.
const data = resolve(import.meta.dirname, '../../../../../shared/data');
const present = existsSync(data);

const text = (path: string): string => readFileSync(resolve(data, path), 'utf8');
const read = (path: string): Catalogue => readCatalogue(text(path), { label: path });

/** Documents of a file, found without the code under test. */
function documents(value: unknown): unknown[] {
  if (Array.isArray(value)) return value.map((item: { server?: unknown }) => item.server ?? item);
  const { data: lists } = value as { data: Record<string, unknown[]> };
  return [...(lists['servers'] ?? []), ...(lists['skills'] ?? []), ...(lists['plugins'] ?? [])];
}

function count({ entries }: Catalogue, kind: string): number {
  return entries.filter((entry) => entry.kind === kind).length;
}

const CATALOGUES: [path: string, format: string, servers: number, skills: number][] = [
  ['catalog-toolhive/native-2025-12-15.json', 'toolhive-native', 65, 0],
  ['catalog-toolhive/native-2026-01-25.json', 'toolhive-native', 66, 0],
  ['catalog-toolhive/native-2026-02-20.json', 'toolhive-native', 66, 0],
  ['catalog-toolhive/native-with-remote-example.json', 'registry-file', 2, 0],
  ['catalog-toolhive/upstream-2026-02-20.json', 'registry-file', 66, 125],
  ['catalog-toolhive/upstream-example.json', 'registry-file', 7, 1],
  ['catalog-official/snapshot-2025-12-18.json', 'server-array', 1995, 0],
  ['catalog-official/seed-2025-09-29.json', 'server-array', 252, 0],
  ['catalog-official/agentregistry-seed-2025-11.json', 'server-array', 262, 0],
];

const NO_CATALOGUES: [path: string, reason: RegExp][] = [
  ['catalog-official/seed-2025-05-16-old-format.json', /332 of 332 entries .* "version_detail"/],
  ['catalog-official/doc-examples.json', /24 of 24 entries/],
  ['catalog-toolhive/dockyard-packages.json', /30 of 30 entries .* name: expected string/],
  ['catalog-toolhive/dockyard-skills.json', /125 of 125 entries .* name: expected string/],
  ['catalog-toolhive/skills-real-sample.json', /3 of 3 entries .* data\.skills/],
  ['catalog-toolhive/spec-yaml-2025-08-30.json', /44 of 44 entries/],
];

describe.skipIf(!present)('real catalogues (skipped where ../shared/data is absent)', () => {
  test('are all covered here', () => {
    const files = ['catalog-toolhive', 'catalog-official'].flatMap((dir) =>
      readdirSync(resolve(data, dir)).map((name) => `${dir}/${name}`),
    );
    expect([...CATALOGUES, ...NO_CATALOGUES].map(([path]) => path).sort()).toEqual(files.sort());
  });

  test.each(CATALOGUES)('%s loads as %s: %i servers, %i skills', (path, format, servers, skills) => {
    const catalogue = read(path);
    expect([catalogue.format, count(catalogue, 'server'), count(catalogue, 'skill')]).toEqual([
      format,
      servers,
      skills,
    ]);
    expect([catalogue.skippedTotal, catalogue.warnings]).toEqual([0, []]);
  });

  test.each(CATALOGUES.filter(([, format]) => format !== 'toolhive-native'))('%s loses no member', (path) => {
    const { entries } = read(path);
    expect(entries.map(({ json }) => JSON.parse(json))).toEqual(documents(JSON.parse(text(path))));
    expect(entries.every(({ json, document }) => JSON.stringify(JSON.parse(json)) === json && document)).toBe(
      true,
    );
  });

  test.each(NO_CATALOGUES)('%s is refused with a reason', (path, reason) => {
    expect(() => read(path)).toThrow(expect.objectContaining({ code: 'catalog/mostly-invalid' }));
    expect(() => read(path)).toThrow(reason);
  });

  test('convert from the native format to what the same catalogue says in the current one', () => {
    const converted = read('catalog-toolhive/native-2026-02-20.json').entries;
    const current = read('catalog-toolhive/upstream-2026-02-20.json').entries.filter(
      ({ kind }) => kind === 'server',
    );
    // The current file calls every version 1.0.0; the native one has better knowledge in the image tag.
    const comparable = (entries: Catalogue['entries']) =>
      new Map(entries.map(({ name, json }) => [name, { ...JSON.parse(json), version: '' }]));
    expect(comparable(converted)).toEqual(comparable(current));
  });

  test('carry the official block of every snapshot entry', () => {
    const items = JSON.parse(text('catalog-official/snapshot-2025-12-18.json')) as {
      _meta: Record<string, unknown>;
    }[];
    const { entries } = read('catalog-official/snapshot-2025-12-18.json');
    expect(entries.map((entry) => (entry.kind === 'server' ? entry.official : undefined))).toEqual(
      items.map(({ _meta }) => _meta['io.modelcontextprotocol.registry/official']),
    );
    expect(new Set(entries.map(entryKey)).size).toBe(items.length);
  });

  test('go on when some entries are damaged, naming them', () => {
    const file = JSON.parse(text('catalog-toolhive/upstream-2026-02-20.json')) as {
      data: { servers: object[] };
    };
    const damaged = file.data.servers.map((server, i) =>
      i % 10 === 0 ? { ...server, version: undefined } : server,
    );
    const catalogue = readCatalogue(JSON.stringify({ ...file, data: { ...file.data, servers: damaged } }), {
      label: 'x',
    });
    expect([count(catalogue, 'server'), catalogue.skippedTotal]).toEqual([59, 7]);
    expect(catalogue.skipped[0]).toMatchObject({ reason: 'version: expected string, received undefined' });
  });
});
