import { once } from 'node:events';
import { chmod, mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { StoredSource } from '../store/rows.ts';
import { systemClock } from '@skep/core/time/clock.ts';
import { DEFAULT_LIMITS, type Limits } from '../shape/limits.ts';
import { openSource } from './open-source.ts';

// What a source made through the API may reach, and what the operator's own may
// (docs/behaviour/registry.md#reach-of-sources).

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'skep-open-source-'));
  await mkdir(join(folder, 'allowed'));
  await mkdir(join(folder, 'bin'));
  await writeFile(join(folder, 'bin', 'git'), `#!/bin/sh\necho '${'x'.repeat(2000)}'\n`);
  await chmod(join(folder, 'bin', 'git'), 0o755);
  for (const name of ['outside.json', 'allowed/inside.json']) await writeFile(join(folder, name), '[]');
  await symlink(join(folder, 'outside.json'), join(folder, 'allowed', 'link.json'));
});
afterAll(() => rm(folder, { recursive: true }));

function fetched(
  creationType: StoredSource['creationType'],
  [kind, block]: readonly [StoredSource['kind'], object],
  limits: Partial<Limits> = {},
): Promise<unknown> {
  const stored: StoredSource = {
    name: 'one',
    kind,
    config: JSON.stringify(block),
    creationType,
    format: null,
    filter: null,
    interval: 1_000,
    claims: '',
    orphaned: false,
    createdAt: '',
    updatedAt: '',
  };
  const source = openSource(stored, {
    env: { PATH: join(folder, 'bin') },
    tempDir: folder,
    clock: systemClock,
    userAgent: 'skep-registry/test',
    limits: { ...DEFAULT_LIMITS, allowedPaths: [join(folder, 'allowed')], ...limits },
  });
  return source.fetch(new AbortController().signal);
}

describe('an address of this machine', () => {
  let server: Server;
  let port: number;
  beforeAll(async () => {
    server = createServer((_request, response) => void response.writeHead(404).end()).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const address = server.address();
    port = typeof address === 'object' && address !== null ? address.port : 0;
  });
  afterAll(() => server.close());

  test.each<readonly [StoredSource['kind'], object]>([
    ['api', { endpoint: 'http://127.0.0.1:9' }],
    ['api', { endpoint: 'http://localhost:9' }],
    ['api', { endpoint: 'http://0x7f.1:9' }],
    ['api', { endpoint: 'http://169.254.169.254' }],
    ['file', { url: 'http://[::1]:9/c.json' }],
    ['file', { url: 'http://[::ffff:127.0.0.1]:9/c.json' }],
    ['git', { repository: 'http://127.0.0.1:9/c.git' }],
  ])('is refused to a source made through the API: %s %j', async (kind, block) => {
    await expect(fetched('API', [kind, block])).rejects.toMatchObject({ code: 'fetch/refused-address' });
  });

  test.each<readonly [kind: StoredSource['kind'], block: (origin: string) => object, code: string]>([
    ['api', (origin) => ({ endpoint: origin }), 'fetch/bad-status'],
    ['file', (origin) => ({ url: `${origin}/c.json` }), 'fetch/bad-status'],
    // This git finds nothing: the failure is that it was looked for.
    ['git', (origin) => ({ repository: `${origin}/c.git` }), 'source/ref-not-found'],
  ])('is open to the operator, and to others where that is allowed: %s', async (kind, block, code) => {
    const source = [kind, block(`http://127.0.0.1:${port}`)] as const;
    await expect(fetched('CONFIG', source)).rejects.toMatchObject({ code });
    await expect(fetched('API', source, { allowPrivateIP: true })).rejects.toMatchObject({ code });
  });
});

describe('the ssh keys of the account that the server runs as', () => {
  const repository = 'git@8.8.8.8:other-team/private.git';
  const key = (name: string) => ({ repository, auth: { sshKeyFile: join(folder, name) } });

  test('are not for sources made through the API, nor are keys that lie anywhere', async () => {
    expect(() => fetched('API', ['git', { repository }])).toThrow(
      expect.objectContaining({ code: 'source/invalid-credentials' }),
    );
    const elsewhere = ['git', key('outside.json')] as const;
    await expect(fetched('API', elsewhere)).rejects.toMatchObject({ code: 'source/path-not-allowed' });
  });

  test('are for those of the configuration file, and a key of the allowed folders is for all', async () => {
    // This git finds nothing: the failure is that it was looked for.
    const missing = { code: 'source/ref-not-found' };
    await expect(fetched('CONFIG', ['git', { repository }])).rejects.toMatchObject(missing);
    await expect(fetched('CONFIG', ['git', key('outside.json')])).rejects.toMatchObject(missing);
    await expect(fetched('API', ['git', key('allowed/inside.json')])).rejects.toMatchObject(missing);
  });

  test('an address of this machine is refused with a key too', async () => {
    const source = { ...key('allowed/inside.json'), repository: 'git@localhost:c.git' };
    await expect(fetched('API', ['git', source])).rejects.toMatchObject({ code: 'fetch/refused-address' });
  });
});

describe('a file of this machine', () => {
  test.each([
    ['allowed/inside.json', true],
    ['outside.json', false],
    ['allowed/../outside.json', false],
    ['allowed/link.json', false],
    ['allowed-not/inside.json', false],
  ])('%s can be named through the API: %s', async (path, allowed) => {
    const source = ['file', { path: join(folder, 'allowed').replace(/allowed$/u, path) }] as const;
    if (allowed) await expect(fetched('API', source)).resolves.toMatchObject({ bytes: Buffer.from('[]') });
    else await expect(fetched('API', source)).rejects.toMatchObject({ code: 'source/path-not-allowed' });
  });

  test('can be any for the operator', async () => {
    const source = ['file', { path: join(folder, 'outside.json') }] as const;
    await expect(fetched('CONFIG', source)).resolves.toMatchObject({ bytes: Buffer.from('[]') });
  });

  test('cannot be sent to a server as a password', async () => {
    const auth = { username: 'x', passwordFile: join(folder, 'outside.json') };
    const source = ['git', { repository: 'https://git.example/c.git', auth }] as const;
    await expect(fetched('API', source)).rejects.toMatchObject({ code: 'source/path-not-allowed' });
  });
});

describe('a limit of the configuration', () => {
  const item = { server: { name: 'io.a/one', version: '1.0.0', description: 'x'.repeat(500) } };
  let server: Server;
  let origin: string;
  beforeAll(async () => {
    // A list of three pages with two servers each, and a document.
    server = createServer((request, response) => {
      const { searchParams } = new URL(request.url ?? '/', 'http://x');
      const page = Number(searchParams.get('cursor') ?? 1);
      const metadata = page < 3 ? { nextCursor: String(page + 1) } : {};
      response.end(JSON.stringify({ servers: [item, item], metadata }));
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const address = server.address();
    origin = `http://127.0.0.1:${typeof address === 'object' && address !== null ? address.port : 0}`;
  });
  afterAll(() => server.close());

  const blocks: Readonly<Record<string, () => readonly [StoredSource['kind'], object]>> = {
    path: () => ['file', { path: join(folder, 'outside.json') }],
    url: () => ['file', { url: `${origin}/c.json` }],
    api: () => ['api', { endpoint: origin }],
    git: () => ['git', { repository: `${origin}/c.git` }],
  };

  const list = (limits: Partial<Limits['apiSource']>): Partial<Limits> => ({
    apiSource: { ...DEFAULT_LIMITS.apiSource, ...limits },
  });

  test.each<[place: string, limits: Partial<Limits>, code: string | undefined]>([
    ['path', { maxCatalogueSize: 1 }, 'file/too-large'],
    ['path', { maxCatalogueSize: 2 }, undefined],
    ['url', { maxCatalogueSize: 1000 }, 'fetch/too-large'],
    ['url', { maxCatalogueSize: 2000 }, undefined],
    ['git', { maxCatalogueSize: 1000 }, 'source/too-large'],
    // What is left of the request is that this git knows nothing.
    ['git', { maxCatalogueSize: 3000 }, 'source/ref-not-found'],
    ['api', { maxCatalogueSize: 1000 }, 'fetch/too-large'],
    ['api', { maxCatalogueSize: 2000 }, 'source/too-large'],
    ['api', { maxCatalogueSize: 4000 }, undefined],
    ['api', list({ maxPages: 2 }), 'source/endless'],
    ['api', list({ maxPages: 3 }), undefined],
    ['api', list({ maxServers: 1 }), 'source/too-large'],
    ['api', list({ maxServers: 5 }), 'source/too-large'],
    ['api', list({ maxServers: 6 }), undefined],
  ])('holds a source at %s: %j', async (place, limits, code) => {
    const source = blocks[place]?.() ?? ['file', {}];
    if (code === undefined) await expect(fetched('CONFIG', source, limits)).resolves.toHaveProperty('bytes');
    else await expect(fetched('CONFIG', source, limits)).rejects.toMatchObject({ code });
  });
});

test.each([
  ['git', {}],
  ['api', { endpoint: 'nonsense' }],
  ['file', { data: '[]', unknown: 1 }],
] as const)('a %s block that another program spoilt is named', (kind, block) => {
  expect(() => fetched('CONFIG', [kind, block])).toThrow(
    expect.objectContaining({ code: 'config/invalid', message: expect.stringContaining('source "one": ') }),
  );
});
