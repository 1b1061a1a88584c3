import { readdirSync, existsSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { readCatalogue } from '@skep/core/catalog/registry-file.ts';
import { describe, expect, test } from 'vitest';
import { commandUnderTest } from '../command-under-test.fixture.ts';

const REAL = resolve(import.meta.dirname, '../../../../../shared/data/catalog-toolhive');

const OLD = {
  version: '2.1.0',
  last_updated: '2026-02-20T00:21:11Z',
  servers: {
    notes: {
      description: 'Keeps notes',
      image: 'ghcr.io/example/notes:v1.2.3',
      transport: 'stdio',
      pulls: 12,
    },
  },
  remote_servers: { weather: { description: 'Says the weather', url: 'https://weather.example/mcp' } },
};
const BROKEN = { ...OLD.servers, nothing: { description: 'Has no image' } };

describe('skep registry convert', () => {
  test('writes the older format as the current one, which reads the same', async () => {
    const skep = await commandUnderTest({ files: { 'old.json': OLD }, supervisor: 'none' });
    const written = await skep.output('registry convert old.json');
    expect(JSON.parse(written)).toMatchObject({
      version: '2.1.0',
      meta: { last_updated: '2026-02-20T00:21:11Z' },
      data: {
        servers: [
          { name: 'io.github.stacklok/notes', version: '1.2.3', packages: [{ registryType: 'oci' }] },
          { name: 'io.github.stacklok/weather', remotes: [{ url: 'https://weather.example/mcp' }] },
        ],
      },
    });
    const before = readCatalogue(JSON.stringify(OLD), { label: 'old' });
    const after = readCatalogue(written, { label: 'new' });
    expect(after.format).toBe('registry-file');
    expect(after.warnings).toEqual([]);
    expect(after.entries).toEqual(before.entries);
  });

  test('writes another file, or the file itself, which then stays as it is', async () => {
    const skep = await commandUnderTest({ files: { 'x.json': OLD }, supervisor: 'none' });
    expect(await skep.output('registry convert x.json --out y.json')).toMatch(
      /^Wrote 2 entries to '.*y\.json'\n$/,
    );
    expect(await skep.output('registry convert x.json --in-place')).toMatch(
      /^Wrote 2 entries to '.*x\.json'\n$/,
    );
    expect(await skep.read('x.json')).toBe(await skep.read('y.json'));
    await skep.output('registry convert x.json --in-place');
    expect(await skep.read('x.json')).toBe(await skep.read('y.json'));
  });

  test('keeps the digits of numbers', async () => {
    const text = JSON.stringify(OLD).replace('12', '12345678901234567890');
    const skep = await commandUnderTest({ files: { 'x.json': text }, supervisor: 'none' });
    expect(await skep.output('registry convert x.json')).toContain('12345678901234567890');
  });

  test('names what it leaves out, and does not replace a file by one that holds less', async () => {
    const skep = await commandUnderTest({
      files: { 'x.json': { ...OLD, servers: BROKEN } },
      supervisor: 'none',
    });
    const { out, err } = await skep.run('registry convert x.json');
    expect(err).toMatch(/^Left out "nothing": .*image.*\n$/);
    expect(JSON.parse(out)).toHaveProperty('data.servers.length', 2);
    const before = await skep.read('x.json');
    expect(await skep.refusal('registry convert x.json --in-place')).toContain(
      'Error: an entry cannot be converted, so the file was left as it is; correct them, or write another file with --out\n',
    );
    expect(await skep.read('x.json')).toBe(before);
  });

  test('says that groups have no place there', async () => {
    const groups = [{ name: 'team', description: 'x', servers: OLD.servers }];
    const skep = await commandUnderTest({
      files: { 'x.json': { ...OLD, servers: {}, groups } },
      supervisor: 'none',
    });
    const { out, err } = await skep.run('registry convert x.json');
    expect(err).toBe('Groups are left out: the current format has none; their servers are in it.\n');
    expect(out).toContain('io.github.stacklok/notes');
  });

  test.each([
    ['missing.json', 'does not exist; check the path'],
    ['x.json --in-place --out y.json', '--out cannot be used together with --in-place'],
  ])('%s is refused', async (line, message) => {
    const skep = await commandUnderTest({ files: { 'x.json': OLD }, supervisor: 'none' });
    expect(await skep.refusal(`registry convert ${line}`)).toContain(message);
  });

  test.skipIf(!existsSync(REAL))('loses no entry of real catalogues', async () => {
    const files = readdirSync(REAL).filter(
      (name) => name.startsWith('native') || name.startsWith('upstream'),
    );
    expect(files.length).toBeGreaterThan(4);
    for (const name of files) {
      const text = readFileSync(join(REAL, name), 'utf8');
      const skep = await commandUnderTest({ files: { 'x.json': text }, supervisor: 'none' });
      const after = readCatalogue(await skep.output('registry convert x.json'), { label: name });
      expect(after.entries, name).toEqual(readCatalogue(text, { label: name }).entries);
    }
  });
});
