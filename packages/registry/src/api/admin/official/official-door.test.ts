import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { type AdminUnderTest, adminUnderTest, CONFIG_REGISTRIES, CONFIG_SOURCES } from '../admin.fixture.ts';

const OFFICIAL = 'io.modelcontextprotocol.registry/official';
const ACME = { org: 'acme' };
const document = (name: string, version: string, claims?: object): object => ({
  $schema: 'https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json',
  name,
  version,
  description: 'd',
  packages: [{ registryType: 'npm', identifier: 'x', version, transport: { type: 'stdio' } }],
  ...(claims === undefined
    ? {}
    : { _meta: { 'io.modelcontextprotocol.registry/publisher-provided': { 'dev.skep': { claims } } } }),
});

describe.each(['/registry/acme-all/v0', '/acme-all/v0', '/v0'])(
  "the official publisher's door %s",
  (door) => {
    let admin: AdminUnderTest;
    beforeAll(async () => void (admin = await adminUnderTest()));
    afterAll(() => admin.close());

    const versionsOf = async (name: string): Promise<unknown[]> => {
      const list = await admin.send(
        'GET',
        `/registry/acme-all/v0.1/servers/${encodeURIComponent(name)}/versions`,
      );
      return list.json().servers.map((item) => [item.server.version, item._meta[OFFICIAL]?.status]);
    };

    test('publishes the document as it was sent, under the claims of the publisher, and shows it as lists do', async () => {
      const body = document('io.acme/mine', '1.0.0', ACME);
      const response = await admin.send('POST', `${door}/publish`, { as: 'writer', body });
      expect(response.statusCode).toBe(200);
      expect(response.json()).toMatchObject({
        server: body,
        _meta: { [OFFICIAL]: { status: 'active', isLatest: true } },
      });
      const claims = await admin.send('GET', '/v1/entries/server/io.acme%2Fmine/claims');
      expect(claims.json()).toEqual({ claims: ACME });
      const again = await admin.send('POST', `${door}/publish`, { as: 'writer', body });
      expect(again.statusCode).toBe(409);
    });

    test('takes no claims that the caller does not hold, wherever they stand', async () => {
      const foreign = document('io.acme/theirs', '1.0.0', { org: 'other' });
      expect((await admin.send('POST', `${door}/publish`, { as: 'writer', body: foreign })).statusCode).toBe(
        403,
      );
      const beside = { ...document('io.acme/beside', '1.0.0'), claims: { org: 'other' } };
      expect((await admin.send('POST', `${door}/publish`, { as: 'writer', body: beside })).statusCode).toBe(
        200,
      );
      const claims = await admin.send('GET', '/v1/entries/server/io.acme%2Fbeside/claims');
      expect(claims.json()).toEqual({ claims: {} });
    });

    test('says what is wrong with a document and stores nothing', async () => {
      const before = await admin.state();
      const good = await admin.send('POST', `${door}/validate`, { body: document('io.acme/new', '1.0.0') });
      expect(good.json()).toEqual({ valid: true, issues: [] });
      const bad = await admin.send('POST', `${door}/validate`, { body: document('io.acme/new', '^1') });
      expect(bad.json()).toMatchObject({ valid: false, issues: [{ severity: 'error' }] });
      expect(bad.json().issues[0]?.message).toContain('not the range');
      expect(await admin.state()).toBe(before);
    });

    test('deprecates a version, hides a deleted one from everybody, and brings it back', async () => {
      for (const version of ['1.0.0', '2.0.0']) {
        await admin.send('POST', `${door}/publish`, { body: document('io.acme/aged', version, ACME) });
      }
      const change = (target: string, body: object) =>
        admin.send('PATCH', `${door}/servers/io.acme%2Faged${target}/status`, { as: 'writer', body });
      const deprecated = await change('/versions/1.0.0', { status: 'deprecated', statusMessage: 'use 2' });
      expect(deprecated.json()._meta[OFFICIAL]).toMatchObject({
        status: 'deprecated',
        statusMessage: 'use 2',
      });
      expect(await versionsOf('io.acme/aged')).toEqual([
        ['1.0.0', 'deprecated'],
        ['2.0.0', 'active'],
      ]);
      await change('/versions/2.0.0', { status: 'deleted' });
      expect(await versionsOf('io.acme/aged')).toEqual([['1.0.0', 'deprecated']]);
      const hidden = await admin.send('GET', '/registry/acme-all/v0.1/servers/io.acme%2Faged/versions/2.0.0');
      expect(hidden.statusCode).toBe(404);
      const taken = await admin.send('POST', `${door}/publish`, {
        body: document('io.acme/aged', '2.0.0', ACME),
      });
      expect(taken.statusCode).toBe(409);
      expect((await change('', { status: 'deleted' })).json().updatedCount).toBe(2);
      expect(await versionsOf('io.acme/aged')).toEqual([]);
      expect((await change('', { status: 'active' })).json().servers).toHaveLength(2);
      expect(await versionsOf('io.acme/aged')).toEqual([
        ['1.0.0', 'active'],
        ['2.0.0', 'active'],
      ]);
    });

    test('changes nothing of an entry that the caller does not cover', async () => {
      await admin.send('POST', `${door}/publish`, { body: document('io.acme/guarded', '1.0.0', ACME) });
      const before = await admin.state();
      const url = `${door}/servers/io.acme%2Fguarded/status`;
      const refused = await admin.send('PATCH', url, { as: 'outsider', body: { status: 'deleted' } });
      expect(refused.statusCode).toBe(403);
      expect((await admin.send('PATCH', url, { as: 'nobody', body: { status: 'deleted' } })).statusCode).toBe(
        401,
      );
      expect(await admin.state()).toBe(before);
    });
  },
);

test.each([
  ['/v0', [], 'no managed source available for publishing'],
  ['/registry/synced/v0', undefined, 'registry "synced" has no managed source'],
])('says clearly at %s that there is nothing to publish to', async (door, none, words) => {
  const admin = await adminUnderTest(none === undefined ? {} : { sources: none, registries: none });
  const response = await admin.send('POST', `${door}/publish`, { body: document('io.acme/x', '1.0.0') });
  expect([response.statusCode, response.json().error]).toEqual([404, expect.stringContaining(words)]);
  await admin.close();
});

test('changes and deletes nothing at the door of a registry that was closed since the first look at it', async () => {
  const admin = await adminUnderTest();
  const { store } = admin;
  const registry = '/registry/acme-all';
  const body = document('io.acme/mine', '1.0.0', ACME);
  expect((await admin.send('POST', `${registry}/v0/publish`, { as: 'both', body })).statusCode).toBe(200);
  const [mark, remove] = [store.markVersions.bind(store), store.deleteVersion.bind(store)];
  const opened = { sources: CONFIG_SOURCES, registries: CONFIG_REGISTRIES };
  const closed = CONFIG_REGISTRIES.map((one) => ({ ...one, claims: '{"org":["other"]}' }));
  vi.spyOn(store, 'markVersions').mockImplementationOnce(async (...asked) => {
    await store.reconcile({ ...opened, registries: closed });
    return mark(...asked);
  });
  vi.spyOn(store, 'deleteVersion').mockImplementationOnce(async (...asked) => {
    await store.reconcile({ ...opened, registries: closed });
    return remove(...asked);
  });
  const version = 'servers/io.acme%2Fmine/versions/1.0.0';
  const change = { as: 'both', body: { status: 'deprecated' } } as const;
  expect((await admin.send('PATCH', `${registry}/v0/${version}/status`, change)).statusCode).toBe(403);
  await store.reconcile(opened);
  expect((await admin.send('DELETE', `${registry}/v0.1/${version}`, { as: 'both' })).statusCode).toBe(403);
  await admin.close();
});
