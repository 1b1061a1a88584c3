import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type AdminUnderTest, adminUnderTest, type CallerName } from '../admin.fixture.ts';

const FILE = { file: { path: '/data/extra.json' }, syncPolicy: { interval: '5m' } };
const INSUFFICIENT = 'insufficient claims: caller claims do not cover resource claims';
const CATALOGUE = JSON.stringify({ servers: [{ server: { name: 'a/b', version: '1', description: 'd' } }] });

let admin: AdminUnderTest;
beforeAll(async () => {
  admin = await adminUnderTest();
  await admin.send('PUT', '/v1/sources/theirs', { body: { ...FILE, claims: { org: 'other' } } });
  await admin.send('PUT', '/v1/sources/mine', { body: { ...FILE, claims: { org: 'acme' } } });
  await admin.send('PUT', '/v1/sources/unlabelled', { body: FILE });
  await admin.send('PUT', '/v1/sources/inline', { body: { file: { data: CATALOGUE } } });
});
afterAll(() => admin.close());

describe('creating and replacing', () => {
  test('answers the source as documented', async () => {
    const body = { ...FILE, claims: { org: 'acme' } };
    const created = await admin.send('PUT', '/v1/sources/extra', { as: 'admin', body });
    expect([created.statusCode, created.headers['location']]).toEqual([201, '/v1/sources/extra']);
    expect(created.json()).toEqual({
      name: 'extra',
      type: 'file',
      creationType: 'API',
      sourceType: 'file',
      sourceConfig: { path: '/data/extra.json' },
      syncSchedule: '5m0s',
      claims: { org: 'acme' },
      syncStatus: expect.objectContaining({ phase: 'failed', message: 'No previous sync status found' }),
      createdAt: expect.any(String),
      updatedAt: expect.any(String),
    });
    const replaced = await admin.send('PUT', '/v1/sources/extra', { as: 'admin', body });
    expect([replaced.statusCode, replaced.headers['location']]).toEqual([200, undefined]);
    expect(replaced.json().createdAt).toBe(created.json().createdAt);
    expect(admin.asked).toEqual(expect.arrayContaining(['changed extra']));
  });

  test('replaces as a whole: what is left out is cleared', async () => {
    const filter = { names: { exclude: ['*/old-*'] }, tags: { include: ['stable'] } };
    const first = await admin.send('PUT', '/v1/sources/whole', {
      body: { ...FILE, filter, format: 'upstream' },
    });
    expect(first.json()).toMatchObject({ filterConfig: filter, format: 'upstream' });
    const second = (await admin.send('PUT', '/v1/sources/whole', { body: FILE })).json();
    expect('filterConfig' in second || 'format' in second || 'claims' in second).toBe(false);
  });

  test.each<
    [rule: string, name: string, as: CallerName, body: unknown, status: number, error: RegExp | string]
  >([
    ['the role before the body', 'x', 'writer', '{', 403, 'forbidden: insufficient permissions'],
    ['no JSON', 'x', 'admin', '{', 400, /^invalid request body: /],
    [
      'no kind',
      'x',
      'admin',
      {},
      400,
      /^invalid source configuration: one of .* configuration must be specified/,
    ],
    [
      'two kinds',
      'x',
      'admin',
      { managed: {}, file: { data: 'x' } },
      400,
      /^invalid source configuration: only one of/,
    ],
    [
      'no interval',
      'x',
      'admin',
      { file: FILE.file },
      400,
      /^invalid source configuration: syncPolicy.interval is required for file registries$/,
    ],
    [
      'an interval of nothing',
      'x',
      'admin',
      { ...FILE, syncPolicy: { interval: '0s' } },
      400,
      /must be a positive duration/,
    ],
    [
      'branch and tag',
      'x',
      'admin',
      { git: { repository: 'https://g.test/r', branch: 'a', tag: 'b' }, syncPolicy: { interval: '5m' } },
      400,
      /^invalid source configuration: git/,
    ],
    [
      'a member nobody knows, which may be misspelt claims',
      'x',
      'admin',
      { ...FILE, claim: { org: 'acme' } },
      400,
      /unknown key "claim"/,
    ],
    [
      'claims of a wrong type',
      'x',
      'admin',
      { ...FILE, claims: { n: 1 } },
      400,
      /value must be a string or array of strings/,
    ],
    [
      'a file outside of the folders allowed',
      'x',
      'admin',
      { ...FILE, file: { path: '/etc/passwd' } },
      400,
      'invalid source configuration: "/etc/passwd" is in none of the folders of limits.allowedPaths',
    ],
    [
      'a password file outside of them',
      'x',
      'admin',
      {
        git: { repository: 'https://g.test/r', auth: { username: 'u', passwordFile: '/etc/shadow' } },
        syncPolicy: { interval: '5m' },
      },
      400,
      /^invalid source configuration: "\/etc\/shadow" is in none/,
    ],
    [
      'an ssh repository that would be asked with the keys of the account',
      'x',
      'admin',
      { git: { repository: 'git@8.8.8.8:other-team/private.git' }, syncPolicy: { interval: '5m' } },
      400,
      /^invalid source configuration: an ssh repository of a source made through the API needs auth.sshKeyFile/,
    ],
    [
      'inline data that is no catalogue',
      'x',
      'admin',
      { file: { data: '{}' } },
      400,
      /^invalid source configuration: "file.data"/,
    ],
    [
      'inline data of more bytes than a source may bring',
      'x',
      'admin',
      { file: { data: CATALOGUE.padEnd(9_000_001) } },
      400,
      'invalid source configuration: "file.data" has 9000001 bytes, at most 9000000 are read',
    ],
    [
      'inline data of another format than asked for',
      'x',
      'admin',
      { file: { data: CATALOGUE }, format: 'toolhive' },
      400,
      /^invalid source configuration: "file.data" is a official-list file/,
    ],
    [
      'a kubernetes source that names a file of the server',
      'x',
      'admin',
      { kubernetes: { kubeconfig: '/etc/kubernetes/admin.conf' } },
      400,
      'invalid source configuration: kubernetes.kubeconfig: is only for sources of the configuration file',
    ],
    [
      'a bad body before claims that the caller lacks',
      'x',
      'admin',
      { claims: { org: 'other' } },
      400,
      /^invalid source configuration: /,
    ],
    [
      'claims that the caller lacks before a bad name',
      'Bad_Name',
      'admin',
      { ...FILE, claims: { org: 'other' } },
      403,
      INSUFFICIENT,
    ],
    [
      'a bad name',
      'Bad_Name',
      'admin',
      FILE,
      400,
      'invalid source name: must be 1 to 63 lower-case letters, digits and inner hyphens',
    ],
    ['a second managed source', 'x', 'admin', { managed: {} }, 409, 'at most one managed source is allowed'],
    [
      'one of the configuration',
      'catalog',
      'root',
      FILE,
      403,
      'cannot modify config-created source via API: catalog',
    ],
    ['one whose claims the caller lacks', 'theirs', 'admin', FILE, 403, INSUFFICIENT],
    [
      'new claims that the caller lacks',
      'mine',
      'admin',
      { ...FILE, claims: { org: ['acme', 'other'] } },
      403,
      INSUFFICIENT,
    ],
    [
      'dropping the last claim',
      'mine',
      'admin',
      FILE,
      403,
      'the last claim of a protected resource cannot be dropped',
    ],
    [
      'another kind',
      'mine',
      'admin',
      { git: { repository: 'https://g.test/r' }, syncPolicy: { interval: '5m' }, claims: { org: 'acme' } },
      400,
      'changing source type is not allowed: mine is a file source, not git',
    ],
    [
      'another form of file',
      'mine',
      'admin',
      { file: { url: 'https://u.test/x' }, syncPolicy: { interval: '5m' }, claims: { org: 'acme' } },
      400,
      'changing source type is not allowed: mine reads file.path, not file.url',
    ],
    ['no token', 'x', 'nobody', FILE, 401, 'missing or malformed authorization header'],
  ])('refuses %s', async (...[, name, as, body, status, error]) => {
    const before = await admin.state();
    const response = await admin.send('PUT', `/v1/sources/${name}`, { as, body });
    const message: unknown = typeof error === 'string' ? error : expect.stringMatching(error);
    expect([response.statusCode, response.json()]).toEqual([status, { error: message }]);
    expect(await admin.state()).toBe(before);
  });

  test('lets a super-admin drop the last claim, and anyone give the first', async () => {
    const labelled = { ...FILE, claims: { team: 'platform' } };
    expect((await admin.send('PUT', '/v1/sources/labels', { as: 'admin', body: FILE })).statusCode).toBe(201);
    expect((await admin.send('PUT', '/v1/sources/labels', { as: 'admin', body: labelled })).statusCode).toBe(
      200,
    );
    expect((await admin.send('PUT', '/v1/sources/labels', { as: 'admin', body: FILE })).statusCode).toBe(403);
    expect((await admin.send('PUT', '/v1/sources/labels', { as: 'root', body: FILE })).statusCode).toBe(200);
  });

  test('asks the synchronisation to look at inline data, and shows its size instead of it', async () => {
    expect(admin.asked).toContain('changed inline');
    const { sourceConfig } = (await admin.send('GET', '/v1/sources/inline')).json();
    expect(sourceConfig).toEqual({ dataBytes: Buffer.byteLength(CATALOGUE) });
  });

  test('takes a body of some megabytes with inline data, and refuses one above 10 MiB', async () => {
    const padded = (bytes: number) => ({ file: { data: `${CATALOGUE}${' '.repeat(bytes)}` } });
    expect((await admin.send('PUT', '/v1/sources/inline', { body: padded(5e6) })).statusCode).toBe(200);
    expect((await admin.send('PUT', '/v1/sources/inline', { body: padded(11e6) })).statusCode).toBe(413);
  });

  test.each([
    { file: { url: 'https://files.test/c.json?rev=7&token=hunter2&sig=hunter2' } },
    { api: { endpoint: 'https://user:hunter2@reg.test/' } },
    { git: { repository: 'https://hunter2@git.test/r' } },
  ])('refuses an address whose secret the store would keep, and does not repeat it: %j', async (place) => {
    const body = { ...place, syncPolicy: { interval: '1h' } };
    const response = await admin.send('PUT', '/v1/sources/secret', { body });
    expect([response.statusCode, response.body]).toEqual([400, expect.stringContaining('auth.passwordFile')]);
    expect(response.body).not.toContain('hunter2');
  });
});

describe('reading', () => {
  test('lists by name what the caller satisfies', async () => {
    const names = async (as: CallerName, query = '') => {
      const response = await admin.send('GET', `/v1/sources${query}`, { as });
      return response.json().sources.map(({ name }) => name);
    };
    const all = await names('root');
    expect(all).toEqual(all.toSorted());
    expect(all).toEqual(
      expect.arrayContaining(['catalog', 'foreign', 'internal', 'mine', 'theirs', 'unlabelled']),
    );
    expect(await names('admin')).toEqual(
      all.filter((name: string) => name !== 'foreign' && name !== 'theirs'),
    );
    expect(await names('outsider')).not.toContain('mine');
    const first = (await admin.send('GET', '/v1/sources?limit=2')).json();
    const second = (await admin.send('GET', `/v1/sources?limit=1000&cursor=${first.nextCursor}`)).json();
    expect([...first.sources, ...second.sources].map(({ name }) => name)).toEqual(all);
    expect('nextCursor' in second).toBe(false);
  });

  test.each(['/v1/sources/NAME', '/v1/sources/NAME/entries', '/v1/sources/NAME/sync'])(
    'answers the same for a hidden and a missing one at %s',
    async (path) => {
      const [hidden, missing] = await Promise.all(
        ['theirs', 'absent'].map((name) => admin.send('GET', path.replace('NAME', name), { as: 'admin' })),
      );
      expect([hidden?.statusCode, missing?.statusCode]).toEqual([404, 404]);
      expect(hidden?.json()).toEqual({ error: 'source not found: theirs' });
      expect(hidden?.body.replaceAll('theirs', '?')).toBe(missing?.body.replaceAll('absent', '?'));
      const names = (response: typeof hidden) => Object.keys(response?.headers ?? {}).toSorted();
      expect(names(hidden)).toEqual(names(missing));
    },
  );

  test('groups entries by type and name, with claims, not filtered', async () => {
    const publish = (body: object) => admin.send('POST', '/v1/entries', { body });
    for (const version of ['2.0.0', '1.0.0']) {
      const server = { name: 'io.acme/z', version, title: 'Z', description: 'd' };
      await publish({ server, claims: { org: 'other', team: ['b', 'a'] } });
    }
    await publish({ skill: { namespace: 'io.acme', name: 'a', version: '1', description: 'd' } });
    const { entries } = (await admin.send('GET', '/v1/sources/internal/entries', { as: 'admin' })).json();
    const head = {
      title: 'Z',
      description: 'd',
      createdAt: expect.any(String),
      updatedAt: expect.any(String),
    };
    expect(entries).toEqual([
      {
        entryType: 'MCP',
        name: 'io.acme/z',
        claims: { org: 'other', team: ['a', 'b'] },
        versions: [
          { version: '1.0.0', ...head },
          { version: '2.0.0', ...head },
        ],
      },
      {
        entryType: 'SKILL',
        namespace: 'io.acme',
        name: 'a',
        versions: [expect.objectContaining({ version: '1' })],
      },
    ]);
    const first = (await admin.send('GET', '/v1/sources/internal/entries?limit=1')).json();
    const second = (
      await admin.send('GET', `/v1/sources/internal/entries?limit=1&cursor=${first.nextCursor}`)
    ).json();
    expect([...first.entries, ...second.entries]).toEqual(entries);
  });

  test.each(['?limit=0', '?limit=x', '?cursor=*', '?cursor=e30'])('refuses %s', async (query) => {
    expect((await admin.send('GET', `/v1/sources${query}`)).statusCode).toBe(400);
  });
});

describe('synchronising by hand', () => {
  test('asks for it and shows the status', async () => {
    const response = await admin.send('POST', '/v1/sources/mine/sync', { as: 'admin' });
    expect([response.statusCode, response.json().phase]).toEqual([202, 'failed']);
    expect(admin.asked).toContain('sync mine');
    const status = await admin.send('GET', '/v1/sources/mine/sync', { as: 'admin' });
    expect(status.json()).toEqual(response.json());
  });

  test('is not for a managed source, nor for one that is hidden', async () => {
    const managed = await admin.send('POST', '/v1/sources/internal/sync', { as: 'admin' });
    expect([managed.statusCode, managed.json().error]).toEqual([
      400,
      'source internal is not synchronised (type: managed)',
    ]);
    expect((await admin.send('POST', '/v1/sources/theirs/sync', { as: 'admin' })).statusCode).toBe(404);
    expect(admin.asked).not.toContain('sync theirs');
  });
});

describe('deleting', () => {
  test.each<[rule: string, name: string, as: CallerName, status: number, error: string]>([
    ['an unknown one', 'absent', 'admin', 404, 'source not found: absent'],
    [
      'one of the configuration',
      'catalog',
      'root',
      403,
      'cannot delete config-created source via API: catalog',
    ],
    ['one whose claims the caller lacks', 'theirs', 'admin', 403, INSUFFICIENT],
    ['without the role', 'mine', 'writer', 403, 'forbidden: insufficient permissions'],
  ])('refuses %s', async (...[, name, as, status, error]) => {
    const before = await admin.state();
    const response = await admin.send('DELETE', `/v1/sources/${name}`, { as });
    expect([response.statusCode, response.json()]).toEqual([status, { error }]);
    expect(await admin.state()).toBe(before);
  });

  test('is refused while registries list it as documented', async () => {
    await admin.send('PUT', '/v1/registries/team', { body: { sources: ['extra', 'internal'] } });
    const refused = await admin.send('DELETE', '/v1/sources/extra', { as: 'admin' });
    expect([refused.statusCode, refused.json().error]).toEqual([
      409,
      'source is referenced by one or more registries: extra is referenced by 1 registry(ies)',
    ]);
    await admin.send('DELETE', '/v1/registries/team');
    const deleted = await admin.send('DELETE', '/v1/sources/extra', { as: 'admin' });
    expect([deleted.statusCode, deleted.body]).toEqual([204, '']);
    expect((await admin.send('GET', '/v1/sources/extra')).statusCode).toBe(404);
  });
});
