import type { ServerEntry } from '@skep/core/catalog/entry.ts';
import { readCatalogue } from '@skep/core/catalog/registry-file.ts';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { CatalogSource } from '../catalog/catalog-source.ts';
import { wholeCatalog } from '../catalog/catalog-source.ts';
import { resolveTarget, parseTarget, type Resolved, type ResolveOptions } from './resolve-target.ts';

const npm = {
  registryType: 'npm',
  identifier: '@example/files',
  version: '1.2.3',
  transport: { type: 'stdio' },
};
const oci = { registryType: 'oci', identifier: 'ghcr.io/example/box:1', transport: { type: 'stdio' } };
const remote = { type: 'streamable-http', url: 'https://example.com/mcp' };
const entries: readonly ServerEntry[] = readCatalogue(
  JSON.stringify([
    { name: 'com.example/files', version: '1.0.0', description: 'Files', packages: [npm] },
    { name: 'com.example/both', version: '1.0.0', description: 'Both', packages: [npm, oci] },
    { name: 'com.example/box', version: '1.0.0', description: 'Box', packages: [oci] },
    { name: 'com.example/far', version: '1.0.0', description: 'Far', remotes: [remote] },
    { name: 'org.example/box', version: '1.0.0', description: 'Another', packages: [oci] },
  ]),
  { label: 'test' },
).entries.flatMap((entry) => (entry.kind === 'server' ? [entry] : []));

const working = wholeCatalog({ kind: 'built-in', location: '' }, async () => entries);
const down: CatalogSource = {
  ...working,
  find: () => Promise.reject(new SkepError('fetch/unreachable')),
};

async function resolve(...asked: Parameters<typeof resolveAny>): Promise<Resolved> {
  const found = await resolveAny(...asked);
  if ('url' in found) throw new TypeError(`${found.url} is elsewhere`);
  return found;
}

function resolveAny(
  text: string,
  runtimeKind: 'docker' | 'sandbox' | 'none' = 'docker',
  catalog = working,
  ask?: ResolveOptions['ask'],
): ReturnType<typeof resolveTarget> {
  const signal = new AbortController().signal;
  return resolveTarget(parseTarget(text, '/home/ann'), {
    openCatalog: async () => catalog,
    runtime: async () => {
      if (runtimeKind === 'none') throw new SkepError('runtime/unavailable');
      return { runsImages: runtimeKind === 'docker' };
    },
    ask,
    signal,
  });
}

describe('what runs', () => {
  test('a catalogue name runs its package, and the short name names the workload', async () => {
    expect(await resolve('files')).toMatchObject({
      source: { kind: 'package', ecosystem: 'npm', name: '@example/files', version: '1.2.3' },
      generatedName: 'files',
      entryName: 'com.example/files',
    });
  });
  test('an engine prefers the image, the sandbox takes the package', async () => {
    expect((await resolve('both')).source.kind).toBe('image');
    expect((await resolve('both', 'sandbox')).source.kind).toBe('package');
  });
  test('a full name resolves what a short one leaves open', async () => {
    await expect(resolve('box')).rejects.toMatchObject({ code: 'catalog/ambiguous-name' });
    expect((await resolve('com.example/box')).generatedName).toBe('com-example-box');
  });
  test('which of several is meant the person says, where somebody can be asked', async () => {
    const asked: unknown[] = [];
    const choose: ResolveOptions['ask'] = async ({ name, choices }) => {
      asked.push({ name, choices });
      return 'org.example/box';
    };
    expect(await resolve('box', 'docker', working, choose)).toMatchObject({
      entryName: 'org.example/box',
      generatedName: 'org-example-box',
    });
    expect(asked).toEqual([{ name: 'Which "box"?', choices: ['com.example/box', 'org.example/box'] }]);
  });
  test('what the catalogue does not have is an image when it looks like one', async () => {
    expect((await resolve('ghcr.io/x/y:2')).source).toEqual({ kind: 'image', reference: 'ghcr.io/x/y:2' });
  });
  test('a bare word that the catalogue does not have is never an image', async () => {
    await expect(resolve('github')).rejects.toMatchObject({ code: 'target/not-found' });
  });
  test('a catalogue that is down is an error for every name, also for what looks like an image', async () => {
    await expect(resolve('x/y:1', 'docker', down)).rejects.toMatchObject({ code: 'fetch/unreachable' });
  });
  test('a package reference needs no catalogue', async () => {
    expect((await resolve('npx://@a/b', 'docker', down)).generatedName).toBe('a-b');
  });
  test.each([
    ['https://api.example.com/mcp', 'example', 'https://api.example.com/mcp'],
    ['http://127.0.0.1:8080/', '127-0-0-1', 'http://127.0.0.1:8080/'],
    ['https://localhost/a?b=1,2', 'localhost', 'https://localhost/a?b=1,2'],
    ['far', 'far', 'https://example.com/mcp'],
  ])('a server elsewhere needs no runtime: %s', async (text, generatedName, url) => {
    expect(await resolveAny(text, 'none')).toMatchObject({ url, generatedName });
  });
});

describe('what the argument of run means', () => {
  test.each([
    ['npx://@scope/name@1.2.3', 'package'],
    ['uvx://mcp-server-time', 'package'],
    ['go://./server', 'package'],
    ['https://example.com/mcp', 'remote'],
    ['everything', 'name'],
    ['io.github.x/y', 'name'],
  ])('%s is a %s', (text, kind) => {
    expect(parseTarget(text, '/home/ann').kind).toBe(kind);
  });
  test.each([
    ['github', false],
    ['ghcr.io/github/github-mcp-server', true],
    ['nginx:1', true],
    ['x@sha256:abc', true],
    ['a b', undefined],
    ['$(x)/y', false],
    ['-v/x', false],
  ])('%s may be an image: %s', (text, mayBeImage) => {
    if (mayBeImage === undefined) {
      expect(() => parseTarget(text, '/home/ann')).toThrow(
        expect.objectContaining({ code: 'target/invalid' }),
      );
    } else {
      expect(parseTarget(text, '/home/ann')).toMatchObject({ kind: 'name', mayBeImage });
    }
  });
  test.each([
    ['ftp://x', 'target/invalid'],
    ['http://', 'target/invalid'],
    // Not the host x.
    ['https:///x', 'target/invalid'],
    ['http://\\x', 'target/invalid'],
    ['https://?x', 'target/invalid'],
    ['https://ann:secret@example.com/', 'target/invalid'],
    ['npx://; rm -rf /', 'target/invalid-package'],
    ['', 'usage/missing-argument'],
    ['a\nb', 'target/invalid'],
  ])('%j is refused', (text, code) => {
    expect(() => parseTarget(text, '/home/ann')).toThrow(expect.objectContaining({ code }));
  });
  test.each(['./server', '../server', '.', '..', '/srv/server'])(
    'the path %s is told to be one, with the way to run what is there',
    (text) => {
      expect(() => parseTarget(text, '/home/ann')).toThrow(
        expect.objectContaining({
          code: 'target/invalid',
          message: `"${text}" is a path, and no name of a server or an image`,
          hint: `a Go project is run as go://${text}, a saved run configuration with --from-config ${text}`,
        }),
      );
    },
  );
  test('any text is classified or refused with a code', () => {
    fc.assert(
      fc.property(fc.string(), (text) => {
        try {
          parseTarget(text, '/home/ann');
        } catch (error) {
          expect(error).toHaveProperty('code');
        }
      }),
    );
  });
});
