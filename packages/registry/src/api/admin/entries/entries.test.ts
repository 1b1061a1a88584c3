import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { allowed, publishOf } from '../../../store/contract/fixture.ts';
import { type AdminUnderTest, adminUnderTest, type CallerName } from '../admin.fixture.ts';

type Method = 'GET' | 'PUT' | 'DELETE';

const LINTER = 'io.acme%2Flinter';
let admin: AdminUnderTest;

beforeAll(async () => {
  admin = await adminUnderTest();
  const publish = (body: object) => admin.send('POST', '/v1/entries', { body });
  const server = (name: string, version: string) => ({ name, version, description: 'd' });
  for (const version of ['1.0.0', '1.9.0', '1.10.0']) {
    await publish({ server: server('io.acme/linter', version), claims: { org: 'acme' } });
  }
  await publish({ server: server('io.other/tool', '1.0.0'), claims: { org: 'other' } });
  await publish({ server: server('io.acme/plain', '1.0.0') });
  for (const namespace of ['io.acme', 'io.two']) {
    const skill = { namespace, name: 'triage', version: '1.0.0', description: 'd' };
    await publish({ skill, claims: { org: 'acme' } });
  }
  const plugin = { namespace: 'io.acme', name: 'only', version: '1.0.0', description: 'd' };
  await publish({ plugin, claims: { org: 'acme', team: ['platform', 'data'] } });
});
afterAll(() => admin.close());

describe('refusals change nothing', () => {
  test.each<[rule: string, method: Method, url: string, as: CallerName, status: number, error: string]>([
    [
      'role before everything',
      'DELETE',
      `/v1/entries/robot/x/versions/1`,
      'reader',
      403,
      'forbidden: insufficient permissions',
    ],
    [
      'an unknown type',
      'DELETE',
      `/v1/entries/robot/x/versions/1`,
      'writer',
      400,
      "unsupported entry type: must be 'server', 'skill', or 'plugin'",
    ],
    [
      'a type in capitals',
      'DELETE',
      `/v1/entries/Server/x/versions/1`,
      'writer',
      400,
      "unsupported entry type: must be 'server', 'skill', or 'plugin'",
    ],
    [
      'a name that is none',
      'DELETE',
      `/v1/entries/server/a%2Fb%2Fc/versions/1`,
      'writer',
      400,
      'invalid server name format: the name has more than one "/"',
    ],
    [
      'an unknown entry',
      'DELETE',
      `/v1/entries/server/io.acme%2Fnone/versions/1`,
      'writer',
      404,
      'not found',
    ],
    ['an unknown version', 'DELETE', `/v1/entries/server/${LINTER}/versions/9`, 'writer', 404, 'not found'],
    ['the word latest', 'DELETE', `/v1/entries/server/${LINTER}/versions/latest`, 'writer', 404, 'not found'],
    [
      'claims that the caller lacks',
      'DELETE',
      `/v1/entries/server/${LINTER}/versions/1.0.0`,
      'outsider',
      403,
      'insufficient claims: caller claims do not cover resource claims',
    ],
    [
      'a bare skill name that two have',
      'DELETE',
      `/v1/entries/skill/triage/versions/1.0.0`,
      'writer',
      409,
      'more than one skill is called "triage": give namespace%2Fname',
    ],
    [
      'a skill asked for as a plugin',
      'DELETE',
      `/v1/entries/plugin/triage/versions/1.0.0`,
      'writer',
      404,
      'not found',
    ],
    [
      'the door of a registry: an unknown registry',
      'DELETE',
      `/none/v0.1/servers/${LINTER}/versions/1.0.0`,
      'writer',
      404,
      'registry not found',
    ],
    [
      'the door of a registry: the gate',
      'DELETE',
      `/foreign-all/v0.1/servers/${LINTER}/versions/1.0.0`,
      'writer',
      403,
      'forbidden: insufficient claims for registry',
    ],
    [
      'the door of a registry: a registry without the managed source',
      'DELETE',
      `/synced/v0.1/servers/${LINTER}/versions/1.0.0`,
      'writer',
      404,
      'not found',
    ],
    [
      'the door of a registry: claims',
      'DELETE',
      `/open/v0.1/servers/${LINTER}/versions/1.0.0`,
      'outsider',
      403,
      'insufficient claims: caller claims do not cover resource claims',
    ],
    [
      'reading claims: an unknown type',
      'GET',
      `/v1/entries/robot/x/claims`,
      'writer',
      400,
      "invalid entry type: must be 'server', 'skill', or 'plugin'",
    ],
    [
      'reading claims: an unknown entry',
      'GET',
      `/v1/entries/server/io.acme%2Fnone/claims`,
      'writer',
      404,
      'not found',
    ],
    [
      'reading claims: claims that the caller lacks',
      'GET',
      `/v1/entries/server/io.other%2Ftool/claims`,
      'writer',
      403,
      'insufficient claims: caller claims do not cover resource claims',
    ],
    [
      'reading claims: one of two values does not do',
      'GET',
      `/v1/entries/plugin/only/claims`,
      'writer',
      403,
      'insufficient claims: caller claims do not cover resource claims',
    ],
    [
      'reading claims: no role',
      'GET',
      `/v1/entries/server/${LINTER}/claims`,
      'admin',
      403,
      'forbidden: insufficient permissions',
    ],
    [
      'no token',
      'GET',
      `/v1/entries/server/${LINTER}/claims`,
      'nobody',
      401,
      'missing or malformed authorization header',
    ],
  ])('%s', async (...[, method, url, as, status, error]) => {
    const before = await admin.state();
    const response = await admin.send(method, url, { as });
    expect([response.statusCode, response.json()]).toEqual([status, { error }]);
    expect(await admin.state()).toBe(before);
  });

  test.each<[rule: string, name: string, as: CallerName, body: unknown, status: number, error: RegExp]>([
    ['no JSON', LINTER, 'writer', '{', 400, /^invalid request body: /],
    [
      'a number as value',
      LINTER,
      'writer',
      { claims: { n: 1 } },
      400,
      /^claim "n": value must be a string or array of strings$/,
    ],
    [
      'a number in a list',
      LINTER,
      'writer',
      { claims: { n: ['a', 1] } },
      400,
      /^claim "n": array element \[1\] must be a string$/,
    ],
    ['an unknown entry', 'io.acme%2Fnone', 'writer', { claims: {} }, 404, /^not found$/],
    [
      'claims that the caller does not hold',
      LINTER,
      'writer',
      { claims: { org: 'other' } },
      403,
      /^insufficient claims/,
    ],
    [
      'an entry whose claims the caller does not hold',
      'io.other%2Ftool',
      'writer',
      { claims: { org: 'acme' } },
      403,
      /^insufficient claims/,
    ],
  ])('putting claims: %s', async (...[, name, as, body, status, error]) => {
    const before = await admin.state();
    const response = await admin.send('PUT', `/v1/entries/server/${name}/claims`, { as, body });
    expect([response.statusCode, response.json()]).toEqual([status, { error: expect.stringMatching(error) }]);
    expect(await admin.state()).toBe(before);
  });
});

describe('claims of an entry', () => {
  const claimsOf = async (name: string) =>
    (await admin.send('GET', `/v1/entries/server/${name}/claims`)).json();
  const seenBy = async (as: CallerName, name: string) =>
    (await admin.send('GET', `/open/v0.1/servers/${name}/versions/latest`, { as })).statusCode;

  test('are shown as a map, also where there are none', async () => {
    expect(await claimsOf(LINTER)).toEqual({ claims: { org: 'acme' } });
    expect(await claimsOf('io.acme%2Fplain')).toEqual({ claims: {} });
  });

  test('may be given by everyone with the role to an entry that has none', async () => {
    const read = await admin.send('GET', '/v1/entries/server/io.acme%2Fplain/claims', { as: 'writer' });
    expect(read.statusCode).toBe(200);
    const body = { claims: { team: 'platform' } };
    const put = await admin.send('PUT', '/v1/entries/server/io.acme%2Fplain/claims', { as: 'writer', body });
    expect([put.statusCode, put.body]).toEqual([204, '']);
    expect(await seenBy('writer', 'io.acme%2Fplain')).toBe(200);
    expect(await seenBy('outsider', 'io.acme%2Fplain')).toBe(404);
  });

  test('hold for all versions, and hide the entry when they are cleared', async () => {
    const url = `/v1/entries/server/${LINTER}/claims`;
    for (const body of [{ claims: {} }, {}]) {
      expect(
        (await admin.send('PUT', url, { as: 'writer', body: { claims: { org: 'acme' } } })).statusCode,
      ).toBe(204);
      expect(await seenBy('writer', LINTER)).toBe(200);
      expect((await admin.send('PUT', url, { as: 'writer', body })).statusCode).toBe(204);
      expect(await claimsOf(LINTER)).toEqual({ claims: {} });
      expect(await seenBy('writer', LINTER)).toBe(404);
      expect(await seenBy('root', LINTER)).toBe(200);
    }
    await admin.send('PUT', url, { body: { claims: { org: 'acme' } } });
  });

  test('cannot be cleared where unlabelled is closed', async () => {
    const strict = await adminUnderTest({ switches: { unlabeled: 'deny' } });
    const server = { name: 'a/b', version: '1', description: 'd' };
    await strict.send('POST', '/v1/entries', { as: 'writer', body: { server, claims: { org: 'acme' } } });
    const response = await strict.send('PUT', '/v1/entries/server/a%2Fb/claims', { as: 'writer', body: {} });
    expect([response.statusCode, response.json().error]).toEqual([403, 'resource has no claims']);
    await strict.close();
  });
});

describe('deleting', () => {
  const isLatest = async () => {
    const response = await admin.send('GET', `/open/v0.1/servers/${LINTER}/versions/latest`);
    return response.statusCode === 200 ? response.json().server.version : response.statusCode;
  };

  test('points latest to the highest version that remains', async () => {
    expect(await isLatest()).toBe('1.10.0');
    const encoded = await admin.send('DELETE', `/v1/entries/server/${LINTER}/versions/1.10.0`, {
      as: 'writer',
    });
    expect([encoded.statusCode, encoded.body]).toEqual([204, '']);
    expect(await isLatest()).toBe('1.9.0');
    const segments = await admin.send('DELETE', '/acme-all/v0.1/servers/io.acme/linter/versions/1.0.0', {
      as: 'writer',
    });
    expect(segments.statusCode).toBe(204);
    expect(await isLatest()).toBe('1.9.0');
  });

  test('takes the entry along with its last version; name and claims are free again', async () => {
    const url = `/registry/acme-all/v0.1/servers/${LINTER}/versions/1.9.0`;
    expect((await admin.send('DELETE', url, { as: 'writer' })).statusCode).toBe(204);
    expect(await isLatest()).toBe(404);
    expect((await admin.send('DELETE', url, { as: 'writer' })).statusCode).toBe(404);
    const server = { name: 'io.acme/linter', version: '1.9.0', description: 'd' };
    const again = await admin.send('POST', '/v1/entries', {
      as: 'outsider',
      body: { server, claims: { org: 'other' } },
    });
    expect(again.statusCode).toBe(201);
  });

  test('finds skills by namespace and name, plugins by a bare name that one has', async () => {
    const skill = await admin.send('DELETE', '/v1/entries/skill/io.two%2Ftriage/versions/1.0.0', {
      as: 'writer',
    });
    expect(skill.statusCode).toBe(204);
    const bare = await admin.send('DELETE', '/v1/entries/skill/triage/versions/1.0.0', { as: 'writer' });
    expect(bare.statusCode).toBe(204);
    expect((await admin.send('DELETE', '/v1/entries/plugin/only/versions/1.0.0')).statusCode).toBe(204);
  });

  test('works for one of several values where arrayMatch is any', async () => {
    const any = await adminUnderTest({ switches: { arrayMatch: 'any' } });
    const server = { name: 'a/b', version: '1', description: 'd' };
    await any.send('POST', '/v1/entries', { body: { server, claims: { team: ['platform', 'data'] } } });
    expect(
      (await any.send('DELETE', '/v1/entries/server/a%2Fb/versions/1', { as: 'writer' })).statusCode,
    ).toBe(204);
    await any.close();
  });
});

describe('a version that no path can carry, stored by an older release', () => {
  const ODD = ['..', '.', '1\u00a0', '\ufeff1.0.0', '1\u2028', '1\u0085', '%2e%2e', 'latest'];

  test.each(['/v1/entries/server/io.odd%2Fstuck/versions', '/open/v0.1/servers/io.odd/stuck/versions'])(
    'can be deleted at %s by whoever holds its claims, and by nobody else',
    async (door) => {
      for (const version of ODD) {
        const publish = publishOf('io.odd/stuck', version);
        const { revision } = await admin.store.publish({ ...publish, claims: '{"org":["acme"]}' }, allowed);
        expect(revision).toBeGreaterThan(0);
        const url = `${door}?version=${encodeURIComponent(version)}`;
        expect((await admin.send('DELETE', url, { as: 'outsider' })).statusCode).toBe(403);
        expect((await admin.send('DELETE', url, { as: 'writer' })).statusCode).toBe(204);
        expect((await admin.send('DELETE', url, { as: 'root' })).statusCode).toBe(404);
      }
    },
  );

  test.each(['..', '.', '1\u00a0', '\ufeff1.0.0', '1\u2028', '1\u0085', '1\ud83d'])(
    'is refused now: %j',
    async (version) => {
      const server = { name: 'io.odd/new', version, description: 'd' };
      const doors = [
        ['/v1/entries', { server }],
        ['/open/v0.1/publish', server],
      ] as const;
      for (const [url, body] of doors) {
        expect((await admin.send('POST', url, { body })).statusCode).toBe(400);
      }
    },
  );

  test('is asked for where it is missing', async () => {
    const answer = await admin.send('DELETE', '/v1/entries/server/io.odd%2Fstuck/versions');
    const error = 'version is missing: give it in the path, or as a query parameter';
    expect([answer.statusCode, answer.json()]).toEqual([400, { error }]);
  });
});
