import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import { type AdminUnderTest, adminUnderTest, type CallerName } from '../admin.fixture.ts';

interface Page {
  readonly entries: readonly unknown[];
  readonly nextCursor?: string;
}

const INSUFFICIENT = 'insufficient claims: caller claims do not cover resource claims';

let admin: AdminUnderTest;
beforeAll(async () => {
  admin = await adminUnderTest();
  await admin.send('PUT', '/v1/registries/theirs', {
    body: { sources: ['internal'], claims: { org: 'other' } },
  });
  await admin.send('PUT', '/v1/registries/mine', {
    body: { sources: ['internal'], claims: { org: 'acme' } },
  });
});
afterAll(() => admin.close());

describe('creating and replacing', () => {
  test('answers the registry as documented and serves it at once', async () => {
    const body = { sources: ['catalog', 'internal'], claims: { org: 'acme', team: 'platform' } };
    const created = await admin.send('PUT', '/v1/registries/team', { as: 'admin', body });
    expect([created.statusCode, created.headers['location']]).toEqual([201, '/v1/registries/team']);
    expect(created.json()).toEqual({
      name: 'team',
      claims: { org: 'acme', team: 'platform' },
      creationType: 'API',
      sources: ['catalog', 'internal'],
      createdAt: expect.any(String),
      updatedAt: expect.any(String),
    });
    expect((await admin.send('GET', '/team/v0.1/servers', { as: 'reader' })).statusCode).toBe(200);
    expect((await admin.send('GET', '/team/v0.1/servers', { as: 'outsider' })).statusCode).toBe(403);
    const replaced = await admin.send('PUT', '/v1/registries/team', {
      as: 'admin',
      body: { ...body, sources: ['internal'] },
    });
    expect([replaced.statusCode, replaced.json().sources]).toEqual([200, ['internal']]);
  });

  test.each<
    [rule: string, name: string, as: CallerName, body: unknown, status: number, error: RegExp | string]
  >([
    ['the role before the body', 'x', 'writer', '{', 403, 'forbidden: insufficient permissions'],
    ['no JSON', 'x', 'admin', '{', 400, /^invalid request body: /],
    ['no sources', 'x', 'admin', {}, 400, 'invalid registry configuration: at least one source is required'],
    [
      'an empty list',
      'x',
      'admin',
      { sources: [] },
      400,
      'invalid registry configuration: at least one source is required',
    ],
    [
      'a source twice',
      'x',
      'admin',
      { sources: ['internal', 'internal'] },
      400,
      'invalid registry configuration: duplicate source: internal',
    ],
    [
      'a number as source',
      'x',
      'admin',
      { sources: [1] },
      400,
      'invalid registry configuration: sources must be a list of names',
    ],
    [
      'a member nobody knows',
      'x',
      'admin',
      { sources: ['internal'], claim: {} },
      400,
      'invalid registry configuration: unknown key "claim"',
    ],
    [
      'claims of a wrong type',
      'x',
      'admin',
      { sources: ['internal'], claims: { n: {} } },
      400,
      /^claim "n": value must be/,
    ],
    ['a bad name', 'Bad_Name', 'admin', { sources: ['internal'] }, 400, /^invalid registry name: /],
    [
      'a reserved name',
      'v1',
      'admin',
      { sources: ['internal'] },
      400,
      'invalid registry name: v1 is a reserved word',
    ],
    [
      'new claims that the caller lacks, before the sources',
      'x',
      'admin',
      { sources: ['absent'], claims: { org: 'other' } },
      403,
      INSUFFICIENT,
    ],
    [
      'a source that does not exist',
      'x',
      'admin',
      { sources: ['internal', 'absent'] },
      400,
      'source not found: absent',
    ],
    [
      'a source whose claims the caller lacks',
      'x',
      'admin',
      { sources: ['foreign'] },
      403,
      'insufficient claims: cannot reference source foreign',
    ],
    [
      'one of the configuration',
      'open',
      'root',
      { sources: ['internal'] },
      403,
      'cannot modify config-created registry via API: open',
    ],
    ['one whose claims the caller lacks', 'theirs', 'admin', { sources: ['internal'] }, 403, INSUFFICIENT],
    [
      'dropping the last claim',
      'mine',
      'admin',
      { sources: ['internal'] },
      403,
      'the last claim of a protected resource cannot be dropped',
    ],
    ['no token', 'x', 'nobody', {}, 401, 'missing or malformed authorization header'],
  ])('refuses %s', async (...[, name, as, body, status, error]) => {
    const before = await admin.state();
    const response = await admin.send('PUT', `/v1/registries/${name}`, { as, body });
    const message: unknown = typeof error === 'string' ? error : expect.stringMatching(error);
    expect([response.statusCode, response.json()]).toEqual([status, { error: message }]);
    expect(await admin.state()).toBe(before);
  });
});

describe('reading', () => {
  const names = async (as: CallerName) =>
    (await admin.send('GET', '/v1/registries', { as })).json().registries.map(({ name }) => name);

  test('needs no role and lists by name what the caller satisfies', async () => {
    expect(await names('root')).toEqual([
      'acme-all',
      'foreign-all',
      'mine',
      'open',
      'synced',
      'team',
      'theirs',
    ]);
    expect(await names('reader')).toEqual(['acme-all', 'mine', 'open', 'synced', 'team']);
    expect(await names('outsider')).toEqual(['foreign-all', 'open', 'synced', 'theirs']);
  });

  test.each(['/v1/registries/NAME', '/v1/registries/NAME/entries'])(
    'answers the same for a hidden and a missing one at %s',
    async (path) => {
      const [hidden, missing] = await Promise.all(
        ['theirs', 'absent'].map((name) => admin.send('GET', path.replace('NAME', name), { as: 'admin' })),
      );
      expect([hidden?.statusCode, missing?.statusCode]).toEqual([404, 404]);
      expect(hidden?.body.replaceAll('theirs', '?')).toBe(missing?.body.replaceAll('absent', '?'));
    },
  );

  test('shows one', async () => {
    const response = await admin.send('GET', '/v1/registries/open', { as: 'reader' });
    expect(response.json()).toMatchObject({ name: 'open', creationType: 'CONFIG', sources: ['internal'] });
    expect('claims' in response.json()).toBe(false);
  });

  test('names a hidden source to nobody but those who manage registries', async () => {
    const sources = ['foreign', 'internal', 'catalog'];
    const mixed = await adminUnderTest({ registries: [{ name: 'mixed', sources, claims: '' }] });
    for (const [as, shown] of [
      ['reader', ['internal', 'catalog']],
      ['writer', ['internal', 'catalog']],
      ['admin', sources],
      ['root', sources],
    ] as const) {
      const one = (await mixed.send('GET', '/v1/registries/mixed', { as })).json();
      const all = (await mixed.send('GET', '/v1/registries', { as })).json();
      expect([as, one.sources, all.registries]).toEqual([as, shown, [one]]);
    }
    await mixed.close();
  });

  test('does not name a source that came in between, of which it is not known who sees it', async () => {
    const mixed = await adminUnderTest({
      registries: [{ name: 'mixed', sources: ['foreign', 'internal'], claims: '' }],
    });
    onTestFinished(() => mixed.close());
    const { listSources } = mixed.store;
    vi.spyOn(mixed.store, 'listSources').mockImplementation(async () =>
      (await listSources()).filter(({ name }) => name !== 'foreign'),
    );
    const { registries } = (await mixed.send('GET', '/v1/registries', { as: 'reader' })).json();
    expect(registries).toMatchObject([{ name: 'mixed', sources: ['internal'] }]);
  });

  test('lists the entries of its sources flat, with claims, source and position, never shadowed', async () => {
    const server = (version: string) => ({ name: 'io.acme/same', version, description: 'd' });
    for (const version of ['2', '10']) {
      await admin.send('POST', '/v1/entries', { body: { server: server(version), claims: { org: 'acme' } } });
    }
    await admin.store.replaceEntries({
      source: 'catalog',
      at: '2026-01-01T00:00:00Z',
      entries: [
        {
          kind: 'server',
          namespace: '',
          name: 'io.acme/same',
          claims: '',
          versions: [{ version: '2', title: 'T', description: 'd', document: '{}', official: null }],
        },
      ],
      status: {
        phase: 'complete',
        message: '',
        lastAttempt: null,
        lastSync: null,
        lastSuccess: null,
        nextSync: null,
        attemptCount: 0,
        changed: true,
        counts: { server: 1, skill: 0, plugin: 0 },
        contentHash: 'x',
        filterHash: null,
        report: null,
      },
    });
    const url = '/v1/registries/acme-all/entries';
    const { entries } = (await admin.send('GET', url, { as: 'admin' })).json();
    const row = { entryType: 'MCP', name: 'io.acme/same', claims: { org: 'acme' }, description: 'd' };
    expect(entries).toMatchObject([
      { ...row, version: '10', sourceName: 'internal', position: 1 },
      { ...row, version: '2', title: 'T', sourceName: 'catalog', position: 0 },
      { ...row, version: '2', sourceName: 'internal', position: 1 },
    ]);
    const pages: unknown[] = [];
    for (let cursor: string | undefined = ''; cursor !== undefined;) {
      const page: Page = (await admin.send('GET', `${url}?limit=1&cursor=${cursor}`)).json();
      pages.push(...page.entries);
      cursor = page.nextCursor;
    }
    expect(pages).toEqual(entries);
  });

  test('of entries needs the role', async () => {
    const response = await admin.send('GET', '/v1/registries/open/entries', { as: 'reader' });
    expect([response.statusCode, response.json().error]).toEqual([
      403,
      'forbidden: insufficient permissions',
    ]);
  });
});

describe('deleting', () => {
  test.each<[rule: string, name: string, as: CallerName, status: number, error: string]>([
    ['an unknown one', 'absent', 'admin', 404, 'registry not found: absent'],
    ['one of the configuration', 'open', 'root', 403, 'cannot delete config-created registry via API: open'],
    ['one whose claims the caller lacks', 'theirs', 'admin', 403, INSUFFICIENT],
  ])('refuses %s', async (...[, name, as, status, error]) => {
    const before = await admin.state();
    const response = await admin.send('DELETE', `/v1/registries/${name}`, { as });
    expect([response.statusCode, response.json()]).toEqual([status, { error }]);
    expect(await admin.state()).toBe(before);
  });

  test('leaves the sources, and the registry is not served any more', async () => {
    expect((await admin.send('DELETE', '/v1/registries/mine', { as: 'admin' })).statusCode).toBe(204);
    expect((await admin.send('GET', '/mine/v0.1/servers')).statusCode).toBe(404);
    expect((await admin.send('GET', '/v1/sources/internal')).statusCode).toBe(200);
  });
});
