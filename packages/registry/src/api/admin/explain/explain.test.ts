import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type AdminUnderTest, adminUnderTest, type CallerName } from '../admin.fixture.ts';

let admin: AdminUnderTest;
beforeAll(async () => {
  admin = await adminUnderTest();
  const server = (name: string) => ({ name, version: '1', description: 'd' });
  await admin.send('POST', '/v1/entries', {
    body: { server: server('io.acme/x'), claims: { team: ['a', 'platform'] } },
  });
  await admin.send('POST', '/v1/entries', { body: { server: server('io.acme/y'), claims: { org: 'acme' } } });
});
afterAll(() => admin.close());

const ask = (query: Readonly<Record<string, string>>, as: CallerName = 'root') =>
  admin.send('GET', `/v1/explain?${String(new URLSearchParams(query))}`, { as });

describe('for super-admins', () => {
  it('names the first failing key of a supposed caller, and what would change it', async () => {
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

  it('agrees with what is enforced, for every caller and registry', async () => {
    const callers = { writer: { role: 'writer', org: 'acme', team: 'platform' }, outsider: { org: 'other' } };
    for (const [as, claims] of Object.entries(callers)) {
      for (const registry of ['acme-all', 'foreign-all', 'open', 'synced']) {
        const { findings } = (await ask({ registry, claims: JSON.stringify(claims) })).json();
        const gate = findings.find(({ layer }: { layer: string }) => layer === 'registry');
        const { statusCode } = await admin.send('GET', `/${registry}/v0.1/servers`, {
          as: as === 'writer' ? 'writer' : 'outsider',
        });
        expect([registry, gate.allowed]).toEqual([registry, statusCode === 200]);
      }
    }
  });

  it.each([
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
  it('says why a gate is closed', async () => {
    const { findings } = (await ask({ registry: 'foreign-all', entry: 'io.acme/y' }, 'reader')).json();
    expect(findings.at(-1)).toMatchObject({ layer: 'registry', allowed: false, key: 'org' });
  });

  it('says what is seen', async () => {
    const { findings } = (await ask({ registry: 'open', entry: 'io.acme/y' }, 'reader')).json();
    expect(findings.at(-1)).toMatchObject({ layer: 'entry', source: 'internal', allowed: true });
  });

  it.each([
    [{ source: 'foreign' }, { source: 'absent' }],
    [{ entry: 'io.acme/x' }, { entry: 'io.acme/absent' }],
  ])('answers the same for %o, which is hidden, and %o, which is missing', async (hidden, missing) => {
    const responses = [await ask(hidden, 'reader'), await ask(missing, 'reader')];
    expect(responses.map(({ statusCode }) => statusCode)).toEqual([404, 404]);
    const [one, two] = responses.map(({ body }) => body.replace(/foreign|absent/, '?'));
    expect(one).toBe(two);
  });

  it('is all that those without the role may ask', async () => {
    const response = await ask({ claims: '{}' }, 'both');
    expect([response.statusCode, response.json().error]).toEqual([
      403,
      'forbidden: insufficient permissions',
    ]);
  });

  it.each(['x', '5', '[]', 'null', '{'])('refuses the claims %s', async (claims) => {
    expect((await ask({ claims })).statusCode).toBe(400);
  });
});

it('says in anonymous mode that nothing is checked', async () => {
  const open = await adminUnderTest({ mode: 'anonymous' });
  const report = (await open.send('GET', '/v1/explain?registry=acme-all', { as: 'nobody' })).json();
  expect(report).toMatchObject({ mode: 'anonymous', caller: { subject: '', roles: [] } });
  expect(report.findings.every(({ reason }: { reason: string }) => reason === 'authz-off')).toBe(true);
  await open.close();
});
