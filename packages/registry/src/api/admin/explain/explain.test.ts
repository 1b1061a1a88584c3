import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { statusAt } from '../../../store/contract/fixture.ts';
import { storedServer } from '../../snapshot.fixture.ts';
import { type AdminUnderTest, adminUnderTest, type CallerName, source } from '../admin.fixture.ts';

let admin: AdminUnderTest;
beforeAll(async () => {
  admin = await adminUnderTest();
  const server = (name: string) => ({ name, version: '1', description: 'd' });
  await admin.send('POST', '/v1/entries', {
    body: { server: server('io.acme/x'), claims: { team: ['a', 'platform'] } },
  });
  await admin.send('POST', '/v1/entries', { body: { server: server('io.acme/y'), claims: { org: 'acme' } } });
  const at = '2026-01-01T00:00:00.000Z';
  const entries = [storedServer('io.other/z')];
  await admin.store.replaceEntries({ source: 'foreign', entries, at, status: statusAt(at) });
});
afterAll(() => admin.close());

const ask = (query: Readonly<Record<string, string>>, as: CallerName = 'root') =>
  admin.send('GET', `/v1/explain?${String(new URLSearchParams(query))}`, { as });

describe('for super-admins', () => {
  test('names the first failing key of a supposed caller, and what would change it', async () => {
    const claims = JSON.stringify({ sub: 'ann', role: 'writer', org: 'acme', team: ['platform'] });
    const { findings, caller } = (await ask({ registry: 'foreign-all', entry: 'io.acme/x', claims })).json();
    expect(caller).toEqual({ subject: 'ann', roles: ['manageEntries'] });
    expect(findings).toEqual([
      expect.objectContaining({ layer: 'role', subject: 'superAdmin', allowed: false }),
      expect.objectContaining({ layer: 'role', subject: 'manageSources', allowed: false }),
      expect.objectContaining({ layer: 'role', subject: 'manageRegistries', allowed: false }),
      {
        layer: 'role',
        subject: 'manageEntries',
        allowed: true,
        reason: 'role-held',
        because: 'the caller has the role',
      },
      {
        layer: 'registry',
        subject: 'foreign-all',
        allowed: false,
        reason: 'claims-not-covered',
        key: 'org',
        because: 'claim "org" of the caller lacks "other"',
        remedy: 'the value "other"',
      },
      {
        layer: 'entry',
        subject: 'io.acme/x',
        source: 'internal',
        allowed: false,
        reason: 'claims-not-covered',
        key: 'team',
        because: 'claim "team" of the caller lacks "a"',
        remedy: 'the value "a"',
      },
    ]);
  });

  test('agrees with what is enforced, for every caller and registry', async () => {
    const callers = { writer: { role: 'writer', org: 'acme', team: 'platform' }, outsider: { org: 'other' } };
    for (const [as, claims] of Object.entries(callers)) {
      for (const registry of ['acme-all', 'foreign-all', 'open', 'synced']) {
        const { findings } = (await ask({ registry, claims: JSON.stringify(claims) })).json();
        const gate = findings.find(({ layer }) => layer === 'registry');
        const { statusCode } = await admin.send('GET', `/${registry}/v0.1/servers`, {
          as: as === 'writer' ? 'writer' : 'outsider',
        });
        expect([registry, gate?.allowed]).toEqual([registry, statusCode === 200]);
      }
    }
  });

  test.each([
    [{ registry: 'absent' }, 'registry not found: absent'],
    [{ source: 'absent' }, 'source not found: absent'],
    [{ entry: 'io.acme/absent' }, 'not found'],
    [{ entry: 'io.acme/x', type: 'skill' }, 'not found'],
    [{ registry: 'synced', entry: 'io.acme/x' }, 'not found'],
  ])('is 404 for %o', async (query, error) => {
    const response = await ask(query);
    expect([response.statusCode, response.json()]).toEqual([404, { error }]);
  });
});

describe('about oneself', () => {
  test('says why a gate is closed', async () => {
    const { findings } = (await ask({ registry: 'foreign-all', entry: 'io.acme/y' }, 'reader')).json();
    expect(findings.at(-1)).toMatchObject({ layer: 'registry', allowed: false, key: 'org' });
  });

  test('says what is seen', async () => {
    const { findings } = (await ask({ registry: 'open', entry: 'io.acme/y' }, 'reader')).json();
    expect(findings.at(-1)).toMatchObject({ layer: 'entry', source: 'internal', allowed: true });
  });

  test.each([
    [{ source: 'foreign' }, { source: 'absent' }],
    [{ entry: 'io.acme/x' }, { entry: 'io.acme/absent' }],
  ])('answers the same for %o, which is hidden, and %o, which is missing', async (hidden, missing) => {
    const responses = [await ask(hidden, 'reader'), await ask(missing, 'reader')];
    expect(responses.map(({ statusCode }) => statusCode)).toEqual([404, 404]);
    const [one, two] = responses.map(({ body }) => body.replace(/foreign|absent/, '?'));
    expect(one).toBe(two);
  });

  test.each<[what: string, hidden: Record<string, string>, missing: Record<string, string>]>([
    [
      'a source',
      { registry: 'foreign-all', source: 'foreign' },
      { registry: 'foreign-all', source: 'absent' },
    ],
    [
      'an entry',
      { registry: 'foreign-all', entry: 'io.acme/x' },
      { registry: 'foreign-all', entry: 'io.acme/absent' },
    ],
    [
      'an entry in a source',
      { source: 'foreign', entry: 'io.other/z' },
      { source: 'foreign', entry: 'io.other/absent' },
    ],
    [
      'an entry in a source that is missing',
      { source: 'foreign', entry: 'io.other/absent' },
      { source: 'absent', entry: 'io.other/absent' },
    ],
  ])('does not tell whether %s behind a closed gate exists', async (_what, hidden, missing) => {
    const [one, two] = [await ask(hidden, 'reader'), await ask(missing, 'reader')];
    const text = (body: string): string => body.replaceAll(/foreign\b(?!-)|absent/g, '?');
    expect([one.statusCode, text(one.body)]).toEqual([two.statusCode, text(two.body)]);
    expect(one.body).not.toMatch(/internal|io\.acme|io\.other/);
  });

  test('is all that those without the role may ask', async () => {
    const response = await ask({ claims: '{}' }, 'both');
    expect([response.statusCode, response.json().error]).toEqual([
      403,
      'forbidden: insufficient permissions',
    ]);
  });

  test.each(['x', '5', '[]', 'null', '{'])('refuses the claims %s', async (claims) => {
    expect((await ask({ claims })).statusCode).toBe(400);
  });
});

test('says in anonymous mode that nothing is checked', async () => {
  const open = await adminUnderTest({ mode: 'anonymous' });
  const report = (await open.send('GET', '/v1/explain?registry=acme-all', { as: 'nobody' })).json();
  expect(report).toMatchObject({ mode: 'anonymous', caller: { subject: '', roles: [] } });
  expect(report.findings.every(({ reason }) => reason === 'authz-off')).toBe(true);
  await open.close();
});

describe('a publish', () => {
  const server = { name: 'io.acme/x', version: '2', description: 'd' };
  const claims = { team: ['a', 'platform'] };
  const strict = { requirePublishClaims: true, managedSourceGate: true } as const;

  test.each<[why: string, as: CallerName, path: string, body: object]>([
    ['a new version', 'root', '', { server, claims }],
    ['a version that is taken', 'root', '', { server: { ...server, version: '1' }, claims }],
    ['other claims than the first version', 'root', '/registry/open', { server, claims: { team: 'a' } }],
    ['claims that the publisher does not hold', 'writer', '', { server, claims: { team: 'hr' } }],
    ['what is new', 'writer', '/registry/open', { server: { ...server, name: 'io.acme/n' } }],
    ['a registry with a closed gate', 'writer', '/registry/foreign-all', { server, claims }],
    ['a registry without managed source', 'root', '/registry/synced', { server, claims }],
    ['a publisher without role', 'reader', '', { server, claims: { team: 'platform' } }],
    ['a version that is none', 'root', '', { server: { ...server, version: '^1' }, claims }],
    ['claims that are none', 'root', '', { server, claims: { team: 5 } }],
    ['an unknown registry', 'root', '/registry/absent', { server, claims }],
  ])('is decided as publishing decides it, and not stored: %s', async (_, as, path, body) => {
    for (const switches of [{}, strict]) {
      const one = await adminUnderTest({ switches });
      await one.send('POST', '/v1/entries', { body: { server: { ...server, version: '1' }, claims } });
      const before = await one.state();
      const query = path.replace('/registry/', '?registry=');
      const told = await one.send('POST', `/v1/explain${query}`, { as, body });
      expect(await one.state()).toBe(before);
      const url = path === '' ? '/v1/entries' : `${path}/v0.1/publish`;
      const { statusCode } = await one.send('POST', url, { as, body });
      expect([200, statusCode]).toContain(told.statusCode);
      const { findings } = told.statusCode === 200 ? told.json() : { findings: [] };
      const finding = findings.find(({ layer }) => layer === 'publish');
      expect(finding?.allowed ?? false).toBe(statusCode === 201);
      await one.close();
    }
  });

  test.each(['all', 'any'] as const)('tells that readers need %s of several values', async (arrayMatch) => {
    const one = await adminUnderTest({ switches: { arrayMatch } });
    const report = (await one.send('POST', '/v1/explain', { as: 'root', body: { server, claims } })).json();
    expect(report).toMatchObject({ arrayMatch });
    await one.close();
  });
});

describe('a source whose entries a caller may see, but not the source', () => {
  const OTHER = '{"org":["other"]}';
  const hidden = source('internal', { kind: 'managed', config: '{}', interval: null, claims: OTHER });
  const published = {
    server: { name: 'io.acme/y', version: '1', description: 'd' },
    claims: { org: 'acme' },
  };
  const started: AdminUnderTest[] = [];
  afterAll(() => Promise.all(started.map((one) => one.close())));
  const asking = async (gate: string, query: string): Promise<{ statusCode: number; body: string }> => {
    const registries = [{ name: 'only', sources: ['internal'], claims: gate }];
    const one = await adminUnderTest({ sources: [hidden], registries });
    started.push(one);
    await one.send('POST', '/v1/entries', { body: published });
    return one.send('GET', `/v1/explain?${query}`, { as: 'reader' });
  };

  test('is not named', async () => {
    for (const query of ['entry=io.acme/y', 'entry=io.acme/y&registry=only']) {
      const { statusCode, body } = await asking('', query);
      expect([statusCode, JSON.parse(body).findings.at(-1)]).toEqual([
        200,
        expect.objectContaining({ subject: 'io.acme/y', source: '(hidden)', allowed: true }),
      ]);
      expect(body).not.toContain('internal');
    }
  });

  test('has no entries for those who cannot enter a registry that serves them', async () => {
    const { statusCode, body } = await asking(OTHER, 'entry=io.acme/y');
    expect([statusCode, body]).toEqual([404, '{"error":"not found"}']);
  });
});

describe('for everyone else', () => {
  test('names the keys that decide, and no value that a rule or a gate asks for', async () => {
    const answer = await ask({ registry: 'foreign-all' }, 'reader');
    expect(answer.statusCode).toBe(200);
    for (const value of ['super-admin', 'admin', 'writer', 'other']) {
      expect(answer.body).not.toContain(`\\"${value}\\"`);
    }
    const { findings } = answer.json();
    expect(findings).toContainEqual(
      expect.objectContaining({
        subject: 'foreign-all',
        key: 'org',
        because: 'claim "org" of the caller lacks a value',
        remedy: 'another value of the claim "org"',
      }),
    );
    expect(findings[0]?.because).toBe(
      'no rule grants superAdmin: claim "role" has none of the values of a rule',
    );
  });
});
