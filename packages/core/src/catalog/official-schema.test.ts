import { existsSync, readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { Ajv } from 'ajv';
import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { officialFaults } from './official-schema.ts';

const data = resolve(import.meta.dirname, '../../../../../shared/data');
const schema = resolve(data, 'schemas/mcp/2025-12-11-server.schema.json');

const DOCUMENT = {
  $schema: 'https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json',
  name: 'io.acme/weather',
  title: 'Weather',
  description: 'Forecasts',
  version: '1.2.0',
  websiteUrl: 'https://acme.example/weather',
  repository: { url: 'https://git.example/weather', source: 'git' },
  icons: [{ src: 'https://acme.example/i.png', mimeType: 'image/png', sizes: ['48x48'], theme: 'dark' }],
  packages: [
    {
      registryType: 'npm',
      identifier: '@acme/weather',
      version: '1.2.0',
      transport: { type: 'stdio' },
      fileSha256: 'a'.repeat(64),
      packageArguments: [
        { type: 'positional', valueHint: 'city' },
        { type: 'named', name: '--units', choices: ['metric'], isRepeated: false },
      ],
      environmentVariables: [{ name: 'KEY', isSecret: true, format: 'string' }],
    },
  ],
  remotes: [{ type: 'streamable-http', url: 'https://{region}.acme.example/mcp', variables: { region: {} } }],
  _meta: { 'io.modelcontextprotocol.registry/publisher-provided': { tool: 'skep' } },
};

test('finds nothing wrong with a document that is complete, or as short as can be', () => {
  expect(officialFaults(DOCUMENT)).toEqual([]);
  expect(officialFaults({ name: 'a/b', description: 'd', version: '' })).toEqual([]);
});

test('says all that is wrong, each with its place', () => {
  const faults = officialFaults({
    name: 'weather',
    description: '🐝'.repeat(101),
    packages: [{ registryType: 'npm', identifier: 'x', version: 'latest', transport: { type: 'http' } }],
    remotes: [{ type: 'sse', url: 'ftp://a' }],
  });
  expect(faults).toEqual([
    'name: must be namespace/name, like io.github.you/weather',
    'description: must have 1 to 100 characters',
    'version: expected string, received undefined',
    expect.stringMatching(/^packages\[0\]\.transport\.type: /),
    'packages[0].version: must be one version, not the word "latest"',
    'remotes[0].url: must be an http or https URL',
  ]);
});

describe.skipIf(!existsSync(schema))(
  'beside the schema itself (skipped where ../shared/data is absent)',
  () => {
    // RFC 3986 §3: a scheme, and no character that must be escaped.
    const uri = /^[a-z][\d+.a-z-]*:(?:[!#$&'()*+,./:;=?@[\]\w~-]|%[\da-f]{2})+$/i;
    // Read by the tests: what stands here runs also where they are skipped.
    const compileSchema = () =>
      new Ajv({ strict: false, formats: { uri } }).compile(JSON.parse(readFileSync(schema, 'utf8')));

    test('judges as it does whatever is changed in a document', () => {
      const validate = compileSchema();
      const places = [...placesIn(DOCUMENT)];
      const values = fc.constantFrom(
        undefined,
        null,
        0,
        true,
        '',
        'x',
        'latest',
        'a b',
        'https://a.test/',
        'https://{a}/',
        'any',

        'positional',
        'named',
        'stdio',
        'sse',
        'é'.repeat(101),
        'a'.repeat(201),
        [],
        {},
        [1],
        { type: 'x' },
      );
      fc.assert(
        fc.property(fc.constantFrom(...places), values, (place, value) => {
          const changed = replaced(DOCUMENT, place, value);
          expect([place, value, officialFaults(changed)]).toEqual([
            place,
            value,
            validate(changed) ? [] : expect.arrayContaining([expect.any(String)]),
          ]);
        }),
        { numRuns: 2000 },
      );
    });

    test('judges the entries of a real registry as it does', () => {
      const validate = compileSchema();
      const snapshot: readonly { readonly server?: unknown }[] = JSON.parse(
        readFileSync(resolve(data, 'catalog-official/snapshot-2025-12-18.json'), 'utf8'),
      );
      const differing = snapshot.filter(
        ({ server }) => (officialFaults(server).length === 0) !== validate(server),
      );
      expect(differing).toEqual([]);
    });
  },
);

type Place = readonly (string | number)[];

function* placesIn(value: unknown, place: Place = []): Generator<Place> {
  if (typeof value !== 'object' || value === null) return;
  for (const [name, member] of Object.entries(value)) {
    const at = [...place, Array.isArray(value) ? Number(name) : name];
    yield at;
    yield* placesIn(member, at);
  }
}

function replaced(value: unknown, [first, ...rest]: Place, by: unknown): unknown {
  if (first === undefined) return by;
  const inner = replaced((value as Record<string, unknown>)[first], rest, by);
  if (Array.isArray(value)) return value.with(Number(first), inner);
  const { [String(first)]: _, ...others } = value as Record<string, unknown>;
  return inner === undefined ? others : { ...others, [String(first)]: inner };
}
