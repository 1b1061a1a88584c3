import { once } from 'node:events';
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { StoredSource } from '../store/rows.ts';
import { systemClock } from '../sync/clock.ts';
import { openSource } from './open-source.ts';

// What a source made through the API may reach, and what the operator's own may (specification §7, row 22).

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'skep-open-source-'));
  await mkdir(join(folder, 'allowed'));
  for (const name of ['outside.json', 'allowed/inside.json']) await writeFile(join(folder, name), '[]');
  await symlink(join(folder, 'outside.json'), join(folder, 'allowed', 'link.json'));
});
afterAll(() => rm(folder, { recursive: true }));

function fetched(
  creationType: StoredSource['creationType'],
  [kind, block]: readonly [StoredSource['kind'], object],
  allowPrivateIP = false,
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
    env: { PATH: '' },
    tempDir: folder,
    clock: systemClock,
    userAgent: 'skep-registry/test',
    limits: { allowedPaths: [join(folder, 'allowed')], allowPrivateIP, maxInvalidShare: 0.5 },
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

  it.each<readonly [StoredSource['kind'], object]>([
    ['api', { endpoint: 'http://127.0.0.1:9' }],
    ['api', { endpoint: 'http://localhost:9' }],
    ['api', { endpoint: 'http://0x7f.1:9' }],
    ['api', { endpoint: 'http://169.254.169.254' }],
    ['file', { url: 'http://[::1]:9/c.json' }],
    ['file', { url: 'http://[::ffff:127.0.0.1]:9/c.json' }],
    ['git', { repository: 'http://127.0.0.1:9/c.git' }],
    ['git', { repository: 'git@localhost:c.git' }],
  ])('is refused to a source made through the API: %s %j', async (kind, block) => {
    await expect(fetched('API', [kind, block])).rejects.toMatchObject({ code: 'fetch/refused-address' });
  });

  it.each<readonly [kind: StoredSource['kind'], block: (origin: string) => object, code: string]>([
    ['api', (origin) => ({ endpoint: origin }), 'fetch/bad-status'],
    ['file', (origin) => ({ url: `${origin}/c.json` }), 'fetch/bad-status'],
    // There is no git on this PATH: the failure is that it was looked for.
    ['git', (origin) => ({ repository: `${origin}/c.git` }), 'source/git-missing'],
  ])('is open to the operator, and to others where that is allowed: %s', async (kind, block, code) => {
    const source = [kind, block(`http://127.0.0.1:${String(port)}`)] as const;
    await expect(fetched('CONFIG', source)).rejects.toMatchObject({ code });
    await expect(fetched('API', source, true)).rejects.toMatchObject({ code });
  });
});

describe('a file of this machine', () => {
  it.each([
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

  it('can be any for the operator', async () => {
    const source = ['file', { path: join(folder, 'outside.json') }] as const;
    await expect(fetched('CONFIG', source)).resolves.toMatchObject({ bytes: Buffer.from('[]') });
  });

  it('cannot be sent to a server as a password', async () => {
    const auth = { username: 'x', passwordFile: join(folder, 'outside.json') };
    const source = ['git', { repository: 'https://git.example/c.git', auth }] as const;
    await expect(fetched('API', source)).rejects.toMatchObject({ code: 'source/path-not-allowed' });
  });
});

it.each([
  ['git', {}],
  ['api', { endpoint: 'nonsense' }],
  ['file', { data: '[]', unknown: 1 }],
] as const)('a %s block that another program spoilt is named', (kind, block) => {
  expect(() => fetched('CONFIG', [kind, block])).toThrow(
    expect.objectContaining({ code: 'config/invalid', message: expect.stringContaining('source "one": ') }),
  );
});
