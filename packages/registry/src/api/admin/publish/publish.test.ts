import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type AdminUnderTest, adminUnderTest, type CallerName } from '../admin.fixture.ts';

const DOORS = ['/registry/acme-all/v0.1/publish', '/acme-all/v0.1/publish', '/v1/entries'] as const;
const ACME = { org: 'acme' };

const server = (name: string, version = '1.0.0'): object => ({ name, version, description: 'd' });

/** A body that every door takes. */
const wrapped = (name: string, version: string, claims?: unknown): object => ({
  server: server(name, version),
  ...(claims === undefined ? {} : { claims }),
});

describe('publishing, as documented', () => {
  let admin: AdminUnderTest;
  beforeAll(async () => void (admin = await adminUnderTest()));
  afterAll(() => admin.close());

  const publish = (body: unknown, as: CallerName = 'writer') =>
    admin.send('POST', '/registry/acme-all/v0.1/publish', { as, body });
  const first = {
    name: 'io.acme/linter',
    version: '1.0.0',
    url: 'https://linter.acme.example/mcp',
    description: 'Lints code',
    claims: { org: 'acme', team: 'platform' },
  };

  test('names in Location no registry that the publisher may not enter', async () => {
    const body = (name: string) => ({ server: { name, version: '1', description: 'd' } });
    const other = await admin.send('POST', '/v1/entries', { as: 'outsider', body: body('io.other/x') });
    expect([other.statusCode, other.headers['location']]).toEqual([
      201,
      '/registry/foreign-all/v0.1/servers/io.other%2Fx/versions/1',
    ]);
    const registries = [{ name: 'gated', sources: ['internal'], claims: '{"org":["other"]}' }];
    const gated = await adminUnderTest({ registries });
    const mine = await gated.send('POST', '/v1/entries', { as: 'writer', body: body('io.acme/x') });
    expect([mine.statusCode, mine.headers['location']]).toEqual([201, undefined]);
    await gated.close();
  });

  test('answers the stored document, bare, and where to read it', async () => {
    const response = await publish(first);
    expect(response.statusCode).toBe(201);
    expect(response.body).toBe(
      '{"$schema":"https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json","name":"io.acme/linter",' +
        '"description":"Lints code","version":"1.0.0","remotes":[{"type":"streamable-http","url":"https://linter.acme.example/mcp"}]}',
    );
    expect(response.headers['location']).toBe(
      '/registry/acme-all/v0.1/servers/io.acme%2Flinter/versions/1.0.0',
    );
    const read = await admin.send('GET', String(response.headers['location']), { as: 'writer' });
    expect(read.json()).toMatchObject({
      server: response.json(),
      _meta: {
        'io.modelcontextprotocol.registry/official': {
          status: 'active',
          isLatest: true,
          publishedAt: expect.any(String),
          updatedAt: expect.any(String),
        },
      },
    });
  });

  test.each<[rule: string, body: unknown, as: CallerName, status: number, error: string]>([
    ['same name and version again', first, 'writer', 409, 'version already exists: io.acme/linter@1.0.0'],
    [
      'a later version with other claims',
      { ...first, version: '2.0.0', claims: ACME },
      'writer',
      409,
      'claims mismatch: claims do not match existing entry',
    ],
    [
      'the same version with other claims: the mismatch comes first',
      { ...first, claims: ACME },
      'writer',
      409,
      'claims mismatch: claims do not match existing entry',
    ],
    [
      'a later version without claims',
      { ...first, version: '2.0.0', claims: undefined },
      'writer',
      409,
      'claims mismatch: claims do not match existing entry',
    ],
    [
      'a super-admin with other claims: integrity binds everyone',
      { ...first, version: '2.0.0', claims: ACME },
      'root',
      409,
      'claims mismatch: claims do not match existing entry',
    ],
    [
      'claims that the caller does not hold',
      { ...first, name: 'io.acme/other', claims: { team: 'finance' } },
      'writer',
      403,
      'insufficient claims: caller claims do not cover resource claims',
    ],
    [
      'a list of which the caller holds one: all are needed',
      { ...first, name: 'io.acme/other', claims: { team: ['platform', 'data'] } },
      'writer',
      403,
      'insufficient claims: caller claims do not cover resource claims',
    ],
    ['a caller without the role', first, 'reader', 403, 'forbidden: insufficient permissions'],
    [
      'a caller without the role and a broken body',
      '{',
      'reader',
      403,
      'forbidden: insufficient permissions',
    ],
    [
      'a caller whom the gate refuses, with a broken body',
      '{',
      'outsider',
      403,
      'forbidden: insufficient claims for registry',
    ],
    ['no token', first, 'nobody', 401, 'missing or malformed authorization header'],
  ])('refuses %s', async (...[, body, as, status, error]) => {
    const before = await admin.state();
    const response = await publish(body, as);
    expect([response.statusCode, response.json()]).toEqual([status, { error }]);
    expect(response.headers['www-authenticate'] !== undefined).toBe(status === 401);
    expect(await admin.state()).toBe(before);
  });

  test('takes a list and a single value for the same claim, in any order', async () => {
    const claims = { team: ['platform'], org: ['acme', 'acme'] };
    expect((await publish({ ...first, version: '1.1.0', claims })).statusCode).toBe(201);
  });

  test('publishes a skill through the admin door', async () => {
    const skill = {
      namespace: 'io.acme',
      name: 'triage',
      version: '0.1.0',
      description: 'Triage bugs',
      allowedTools: ['Read'],
      packages: [
        { registryType: 'git', url: 'https://git.example/skills.git', ref: 'main', subfolder: 'triage' },
      ],
    };
    const response = await admin.send('POST', '/v1/entries', { as: 'writer', body: { claims: ACME, skill } });
    expect(response.statusCode).toBe(201);
    expect(response.json()).toEqual({
      ...skill,
      id: expect.stringMatching(/^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/),
      status: 'ACTIVE',
      isLatest: true,
      createdAt: expect.any(String),
      updatedAt: expect.any(String),
    });
    expect(response.headers['location']).toBe(
      '/registry/acme-all/v0.1/x/dev.skep/skills/io.acme/triage/versions/0.1.0',
    );
  });

  test('tells namespaces of skills apart, and which version is the latest', async () => {
    const skill = (namespace: string, version: string) => ({
      skill: { namespace, name: 'triage', version, description: 'd', status: 'Deprecated' },
      claims: { org: 'acme' },
    });
    const other = await admin.send('POST', '/v1/entries', { as: 'writer', body: skill('io.other', '0.1.0') });
    expect([other.statusCode, other.json().status]).toEqual([201, 'DEPRECATED']);
    const older = await admin.send('POST', '/v1/entries', { as: 'writer', body: skill('io.other', '0.0.9') });
    expect([older.statusCode, older.json().isLatest]).toEqual([201, false]);
  });
});

describe('where it is published', () => {
  test('is 404 for an unknown registry before the body is read', async () => {
    const admin = await adminUnderTest();
    const response = await admin.send('POST', '/none/v0.1/publish', { as: 'writer', body: '{' });
    expect([response.statusCode, response.json().error]).toEqual([404, 'registry not found']);
    await admin.close();
  });

  test('is 409 where the registry has no managed source, also if there is one elsewhere', async () => {
    const admin = await adminUnderTest();
    const response = await admin.send('POST', '/synced/v0.1/publish', { body: { name: 'a', version: '1' } });
    expect([response.statusCode, response.json().error]).toEqual([
      409,
      'registry "synced" has no managed source',
    ]);
    await admin.close();
  });

  test('is 409 at the admin door where there is no managed source', async () => {
    const admin = await adminUnderTest({ sources: [], registries: [] });
    const response = await admin.send('POST', '/v1/entries', { body: wrapped('a/b', '1') });
    expect([response.statusCode, response.json().error]).toEqual([
      409,
      'no managed source available for publishing',
    ]);
    await admin.close();
  });

  test('is visible to the next read of every registry that lists the source', async () => {
    const admin = await adminUnderTest();
    for (const [index, door] of DOORS.entries()) {
      const name = `io.acme/next${index}`;
      await admin.send('POST', door, { as: 'writer', body: wrapped(name, '1', ACME) });
      const list = await admin.send('GET', `/open/v0.1/servers?search=${encodeURIComponent(name)}`, {
        as: 'writer',
      });
      expect(list.json().metadata.count).toBe(1);
    }
    await admin.close();
  });
});

describe('switches', () => {
  test.each(['writer', 'root'] as const)('requirePublishClaims binds %s', async (as) => {
    const admin = await adminUnderTest({ switches: { requirePublishClaims: true } });
    const response = await admin.send('POST', '/v1/entries', { as, body: wrapped('not a name', '^1') });
    expect([response.statusCode, response.json().error]).toEqual([
      400,
      'claims are required when authorization is enabled',
    ]);
    await admin.close();
  });

  test('without it an entry may be published without claims, and exists for super-admins only', async () => {
    const admin = await adminUnderTest();
    expect(
      (await admin.send('POST', '/v1/entries', { as: 'writer', body: wrapped('a/b', '1') })).statusCode,
    ).toBe(201);
    const path = '/open/v0.1/servers/a%2Fb/versions/1';
    expect((await admin.send('GET', path, { as: 'writer' })).statusCode).toBe(404);
    expect((await admin.send('GET', path, { as: 'root' })).statusCode).toBe(200);
    await admin.close();
  });

  test('managedSourceGate asks for the claims of the managed source', async () => {
    const sources = [
      {
        name: 'internal',
        kind: 'managed',
        config: '{}',
        format: null,
        filter: null,
        interval: null,
      } as const,
    ].map((source) => ({ ...source, claims: '{"org":["other"]}' }));
    const registries = [{ name: 'open', sources: ['internal'], claims: '' }];
    const body = wrapped('a/b', '1', ACME);
    const gated = await adminUnderTest({ sources, registries, switches: { managedSourceGate: true } });
    expect((await gated.send('POST', '/v1/entries', { as: 'writer', body })).statusCode).toBe(403);
    await gated.close();
    const seed = await adminUnderTest({ sources, registries });
    expect((await seed.send('POST', '/v1/entries', { as: 'writer', body })).statusCode).toBe(201);
    await seed.close();
  });
});
