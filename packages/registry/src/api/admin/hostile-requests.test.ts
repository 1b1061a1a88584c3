import * as fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { anyText } from '@skep/core/json/any-text.fixture.ts';
import { type AdminUnderTest, adminUnderTest, type CallerName } from './admin.fixture.ts';

let admin: AdminUnderTest;
beforeAll(async () => void (admin = await adminUnderTest()));
afterAll(() => admin.close());

const URLS = [
  ['POST', '/open/v0.1/publish'],
  ['POST', '/v1/entries'],
  ['PUT', '/v1/sources/fuzz'],
  ['PUT', '/v1/sources/internal'],
  ['PUT', '/v1/registries/fuzz'],
  ['PUT', '/v1/entries/server/io.acme%2Fx/claims'],
] as const;

const target = fc.constantFrom(...URLS);
const as = fc.constantFrom<CallerName>('root', 'writer', 'admin', 'both', 'reader', 'outsider');
const key = fc.oneof(fc.constantFrom('__proto__', 'constructor', 'toString', 'org', 'team', ''), fc.string());
const claims = fc.oneof(
  fc.dictionary(key, fc.oneof(fc.string(), fc.array(fc.string(), { maxLength: 4 }), fc.jsonValue()), {
    maxKeys: 6,
  }),
  fc.constantFrom<unknown>({ org: 'acme' }, { org: ['acme'], team: 'platform' }, null, 5, 'x', []),
);
const MANY_KEYS = Object.fromEntries(Array.from({ length: 10_000 }, (_, index) => [`k${index}`, 'v']));
const document = fc.record(
  {
    name: fc.oneof(
      fc.constantFrom('io.acme/x', 'x', 'a/b/c', '..', '__proto__'),
      fc.string(),
      fc.jsonValue(),
    ),
    version: fc.oneof(fc.constantFrom('1.0.0', 'latest', '^1', '1.x'), fc.string(), fc.jsonValue()),
    namespace: fc.oneof(fc.constant('io.acme'), fc.jsonValue()),
    description: fc.oneof(fc.constant('d'), fc.jsonValue()),
    url: fc.oneof(fc.webUrl(), fc.jsonValue()),
    remotes: fc.jsonValue(),
    packages: fc.jsonValue(),
    _meta: fc.jsonValue(),
  },
  { requiredKeys: [] },
);
const body = fc.oneof(
  fc.record({ server: document, skill: document, plugin: document, claims }, { requiredKeys: [] }),
  fc.tuple(document, claims).map(([flat, given]) => ({ ...flat, claims: given })),
  fc.record(
    {
      sources: fc.oneof(fc.array(fc.constantFrom('internal', 'catalog', 'absent')), fc.jsonValue()),
      file: fc.oneof(fc.constant({ path: '/data/x' }), fc.record({ data: fc.string() }), fc.jsonValue()),
      git: fc.jsonValue(),
      managed: fc.constantFrom({}, null, 1),
      syncPolicy: fc.oneof(fc.constant({ interval: '5m' }), fc.jsonValue()),
      filter: fc.jsonValue(),
      claims,
    },
    { requiredKeys: [] },
  ),
  fc.jsonValue(),
);

describe('whatever a request holds', { timeout: 60_000 }, () => {
  test('is answered below 500, and a refusal changes nothing', async () => {
    await fc.assert(
      fc.asyncProperty(target, as, body, async ([method, url], caller, value) => {
        const before = await admin.state();
        const response = await admin.send(method, url, { as: caller, body: JSON.stringify(value) });
        expect(response.statusCode).toBeLessThan(500);
        if (response.statusCode < 400) return;
        expect(response.json()).toEqual({ error: expect.any(String) });
        expect(await admin.state()).toBe(before);
      }),
      { numRuns: 400 },
    );
  });

  test('also when it is no JSON at all', async () => {
    await fc.assert(
      fc.asyncProperty(target, fc.uint8Array({ maxLength: 200 }), async ([method, url], bytes) => {
        const before = await admin.state();
        const response = await admin.send(method, url, { as: 'both', body: Buffer.from(bytes) });
        expect([400, 403]).toContain(response.statusCode);
        expect(await admin.state()).toBe(before);
      }),
      { numRuns: 150 },
    );
  });

  test('also in the path', async () => {
    const segment = fc.oneof(
      anyText({ minLength: 1 }).map((text) => encodeURIComponent(text.toWellFormed())),
      fc.constantFrom('%2e%2e', '..', '%00', '%2F', 'server', 'skill', '%zz', '__proto__', 'a%252Fb'),
    );
    await fc.assert(
      fc.asyncProperty(
        segment,
        segment,
        fc.constantFrom('GET', 'PUT', 'DELETE'),
        async (one, two, method) => {
          for (const url of [
            `/v1/sources/${one}`,
            `/v1/registries/${one}/entries`,
            `/v1/entries/${one}/${two}/claims`,
            `/v1/entries/${one}/${two}/versions/${one}`,
          ]) {
            const response = await admin.send(method, url, { body: '{}' });
            expect(response.statusCode).toBeLessThan(500);
          }
        },
      ),
      { numRuns: 150 },
    );
  });

  test('refuses names with characters that a database cannot hold, before it is asked', async () => {
    const refused = [
      ['GET', '/v1/sources/a%00b'],
      ['GET', '/v1/sources/%00/entries'],
      ['POST', '/v1/sources/%00/sync'],
      ['PUT', '/v1/sources/%00', { managed: {} }],
      ['DELETE', '/v1/sources/%00'],
      ['GET', '/v1/registries/%00'],
      ['DELETE', '/v1/registries/%00'],
      ['PUT', '/v1/registries/fuzz', { sources: ['inter\u0000nal'] }],
      ['POST', '/%00/v0.1/publish', { name: 'a', version: '1' }],
      ['GET', '/v1/entries/skill/%00/claims'],
      ['PUT', '/v1/entries/skill/io.a%2F%7F/claims', { claims: {} }],
      ['DELETE', '/v1/entries/skill/a/versions/%00'],
      ['GET', '/v1/explain?entry=%00'],
      ['GET', '/v1/explain?source=%C2%85'],
    ] as const;
    for (const [method, url, given] of refused) {
      const response = await admin.send(method, url, given === undefined ? {} : { body: given });
      expect([url, response.statusCode]).toEqual([url, 400]);
    }
  });

  test('refuses halves of surrogate pairs anywhere in a body, and takes whole ones', async () => {
    const before = await admin.state();
    for (const text of [
      '{"server":{"name":"io.acme/half","version":"1\\ud800","description":"d"}}',
      '{"server":{"name":"io.acme/half","version":"1","description":"\\uDC00"},"claims":{}}',
      '{"server":{"name":"io.acme/half","version":"1","description":"d"},"claims":{"\\udbff":"x"}}',
    ]) {
      const response = await admin.send('POST', '/v1/entries', { body: text });
      expect([response.statusCode, response.json().error]).toEqual([
        400,
        'invalid request body: it holds half of a surrogate pair',
      ]);
    }
    expect(await admin.state()).toBe(before);
    const whole =
      '{"server":{"name":"io.acme/whole","version":"1","description":"\\ud83d\\udc1d \\\\ud800"},"claims":{}}';
    expect((await admin.send('POST', '/v1/entries', { body: whole })).statusCode).toBe(201);
    const long = `{"file":{"data":"${'x'.repeat(9_000_000)}\\ud83d\\udc1d"}}`;
    const response = await admin.send('PUT', '/v1/sources/long', { body: long });
    expect([response.statusCode, response.json().error]).toEqual([400, expect.stringContaining('file.data')]);
  });

  test('refuses ten thousand claims, in every place that takes claims', async () => {
    const server = { name: 'io.acme/many', version: '1', description: 'd' };
    for (const [method, url, more] of [
      ['POST', '/v1/entries', { server }],
      ['POST', '/open/v0.1/publish', server],
      ['PUT', '/v1/sources/many', { file: { path: '/data/x' }, syncPolicy: { interval: '5m' } }],
      ['PUT', '/v1/registries/many', { sources: ['internal'] }],
      ['PUT', '/v1/entries/server/io.acme%2Fx/claims', {}],
    ] as const) {
      const response = await admin.send(method, url, { body: { ...more, claims: MANY_KEYS } });
      expect([response.statusCode, response.json().error]).toEqual([
        400,
        expect.stringContaining('claims have 10000 keys, at most 64 are allowed'),
      ]);
    }
  });

  test('keeps claims named __proto__ and constructor as plain data', async () => {
    const text =
      '{"server":{"name":"io.acme/proto","version":"1","description":"d"},"claims":{"__proto__":["x"],"constructor":"y"}}';
    expect((await admin.send('POST', '/v1/entries', { as: 'both', body: text })).statusCode).toBe(403);
    expect((await admin.send('POST', '/v1/entries', { body: text })).statusCode).toBe(201);
    const { body: shown } = await admin.send('GET', '/v1/entries/server/io.acme%2Fproto/claims');
    expect(shown).toBe('{"claims":{"__proto__":"x","constructor":"y"}}');
    const read = await admin.send('GET', '/open/v0.1/servers/io.acme%2Fproto/versions/1', { as: 'both' });
    expect(read.statusCode).toBe(404);
  });
});
