import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import * as fc from 'fast-check';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { ServerEntry } from '@skep/core/catalog/entry.ts';
import { rankServers } from '@skep/core/catalog/rank.ts';
import { places } from '@skep/core/files/places.ts';
import { entriesAt, readIndex } from './catalogue-index.ts';
import type { CatalogSource } from './catalog-source.ts';
import { openCatalog } from './open-catalog.ts';

const { signal } = new AbortController();
const none = {
  otelEndpoint: undefined,
  otelSamplingRate: undefined,
  otelEnvVars: undefined,
  otelInsecure: undefined,
  otelEnablePrometheusMetricsPath: undefined,
  otelTracingEnabled: undefined,
  otelMetricsEnabled: undefined,
  otelUseLegacyAttributes: undefined,
  registryApiUrl: undefined,
  registryUrl: undefined,
  registryAuthType: undefined,
  registryAuthServer: undefined,
  registryAuthIssuer: undefined,
  registryAuthClientId: undefined,
  registryAuthAudience: undefined,
  registryAuthScopes: undefined,
  registryAuthAgreed: undefined,
  caCertificatePath: undefined,
  secretsProvider: undefined,
  buildEnv: undefined,
  buildEnvFromSecrets: undefined,
  buildEnvFromShell: undefined,
  buildAuthFiles: undefined,
  runtimeConfigs: undefined,
};
const config = {
  ...none,
  allowPrivateRegistryIp: false,
  frontPort: 0,
  isolation: 'off',
  imageVerification: undefined,
  sigstoreTrustedRoot: undefined,
} as const;
/** Long after everything that these tests write. */
const later = { now: () => Date.now() + 3_600_000 };
/** Only large catalogues are worth an index. */
const padding = 'x'.repeat(130 * 1024);

let folder: string;
let file: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'skep-index-'));
  file = join(folder, 'catalogue.json');
});
afterEach(() => rmSync(folder, { recursive: true }));

const around = {
  places: places({ env: {}, home: '/nowhere', platform: 'linux', temp: '/nowhere' }),
  env: {},
  platform: 'linux',
  uid: 0,
  signal: new AbortController().signal,
  program: { version: '1' },
} as const;
const place = () => ({ catalogue: file, cacheDir: folder, version: '1' });
const indexed = (clock = later): Promise<CatalogSource> =>
  openCatalog({
    config: { ...config, localRegistryPath: file },
    around,
    index: { cacheDir: folder, clock },
  });
const whole = (): Promise<CatalogSource> =>
  openCatalog({ config: { ...config, localRegistryPath: file }, around });

interface Said {
  readonly version?: string;
  readonly title?: string;
  readonly description?: string;
}
const server = (name: string, said: Said = {}): object => ({
  name,
  version: '1.0.0',
  description: 'Serves',
  ...said,
});

function write(servers: readonly object[], shape: 'wrapped' | 'plain' | 'indented' = 'wrapped'): void {
  const items = shape === 'plain' ? servers : servers.map((one) => ({ server: one, _meta: {} }));
  const list = shape === 'plain' ? { data: { servers: items }, padding } : { servers: items, padding };
  writeFileSync(file, JSON.stringify(list, null, shape === 'indented' ? 2 : 0));
}

const plain = (entries: readonly ServerEntry[]) =>
  entries.map(({ name, version, document, json }) => ({ name, version, document, json }));
const answers = async (catalog: CatalogSource, query: string) => {
  const found = await catalog.find(query, signal).catch((error: unknown) => String(error));
  return {
    ranked: plain(rankServers(await catalog.list({ search: query, signal }), query)),
    found: typeof found === 'object' ? plain([found]) : found,
  };
};

test('says of every query what reading the whole catalogue says', async () => {
  const word = fc.constantFrom(
    'git',
    'github',
    'git-hub',
    'mail',
    'naïve',
    'メール',
    'serves',
    'mial',
    'a"b\\',
  );
  const said = fc.array(word, { maxLength: 3 }).map((words) => words.join(' '));
  const one = fc.record({
    name: fc.constantFrom('io.a/git', 'io.b/git', 'io.b/github-mcp', 'com.mail/send', 'mail'),
    version: fc.constantFrom('1.0.0', '1.2.0', '2.0.0-rc.1'),
    description: said,
    title: said,
  });
  await fc.assert(
    fc.asyncProperty(
      fc.array(one, { minLength: 1, maxLength: 8 }),
      fc.constantFrom('wrapped', 'plain', 'indented'),
      fc.oneof(word, fc.constantFrom('io.b/', 'com.mail/send', '')),
      async (servers, shape, query) => {
        write(servers, shape);
        const expected = await answers(await whole(), query);
        expect(await answers(await indexed(), query)).toEqual(expected);
        expect(await readIndex(place())).toBeDefined();
        expect(await answers(await indexed(), query)).toEqual(expected);
      },
    ),
    { numRuns: 40 },
  );
});

test('a catalogue that is replaced, or changed in place, is read anew', async () => {
  write([server('io.a/one')]);
  await (await indexed()).list({ search: 'one', signal });
  write([server('io.a/two')]);
  expect(await readIndex(place())).toBeUndefined();
  const found = await (await indexed()).list({ search: 'two', signal });
  expect(found.map(({ name }) => name)).toContain('io.a/two');
});

test('as many servers are found at once as there are', async () => {
  write([server('io.a/one')]);
  await (await indexed()).list({ search: 'one', signal });
  const [row] = (await readIndex(place())) ?? [];
  const rows = row ? Array.from({ length: 200_000 }, () => ({ ...row, version: 'other' })) : [];
  expect(await entriesAt(rows, place())).toBeUndefined();
});

test('an index that leads nowhere in the catalogue is as none', async () => {
  write([server('io.a/one'), server('io.a/two')]);
  await (await indexed()).list({ search: 'one', signal });
  const path = join(folder, 'catalogue-index');
  const text = readFileSync(path, 'utf8');
  for (const damage of [
    text.slice(0, -10),
    text.replace('"start":', '"start":1'),
    text.replaceAll(/"end":\d+/g, '"end":1e15'),
    text.replaceAll(/"end":\d+/g, '"end":-1'),
    text.replaceAll('io.a/one', 'io.a/six'),
    text.replaceAll('"name"', '"nom"'),
    text.replace(/\n.*/s, '\n[null]'),
    '',
    '\u0000\n\n\n',
  ]) {
    writeFileSync(path, damage);
    const one = await (await indexed()).find('io.a/one', signal);
    expect(one?.name).toBe('io.a/one');
    const all = await (await indexed()).list({ search: 'serves', signal });
    expect(all.map(({ name }) => name).toSorted()).toEqual(['io.a/one', 'io.a/two']);
  }
});

test('nobody else reads it, and one of another version of Skep is not used', async () => {
  write([server('io.a/one')]);
  await (await indexed()).find('one', signal);
  expect(statSync(join(folder, 'catalogue-index')).mode & 0o777).toBe(0o600);
  expect(await readIndex({ ...place(), version: '2' })).toBeUndefined();
  expect(await readIndex({ ...place(), catalogue: join(folder, 'other.json') })).toBeUndefined();
});

test('a file that has just changed gets none, nor does a small one, nor where the cache cannot be written', async () => {
  write([server('io.a/one')]);
  await (await indexed({ now: Date.now })).list({ search: 'one', signal });
  expect(await readIndex(place())).toBeUndefined();
  writeFileSync(join(folder, 'occupied'), '');
  const occupied = { cacheDir: join(folder, 'occupied'), clock: later };
  const catalog = await openCatalog({
    config: { ...config, localRegistryPath: file },
    around,
    index: occupied,
  });
  expect(await catalog.list({ search: 'one', signal })).toHaveLength(1);
  writeFileSync(file, JSON.stringify({ servers: [{ server: server('io.a/one') }] }));
  await (await indexed()).list({ search: 'one', signal });
  expect(await readIndex(place())).toBeUndefined();
});
