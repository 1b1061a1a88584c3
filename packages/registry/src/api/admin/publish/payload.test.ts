import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { type AdminUnderTest, adminUnderTest } from '../admin.fixture.ts';

const server = (name: string, version = '1.0.0', more: object = {}): object => ({
  name,
  version,
  description: 'd',
  ...more,
});

const wrapped = (name: string, version: string): object => ({ server: server(name, version) });

describe('what can be published', () => {
  let admin: AdminUnderTest;
  beforeAll(async () => void (admin = await adminUnderTest()));
  afterAll(() => admin.close());

  test('keeps a document byte for byte', async () => {
    const document =
      '{"version":"1.0.0","name":"io.acme/exact","description":"\\u00e9 🐝","x-number":12345678901234567890,' +
      '"ratio":1.0,"_meta":{"__proto__":{"polluted":true}},"10":1,"2":2}';
    const body = `{ "server" : ${document} }`;
    const response = await admin.send('POST', '/v1/entries', { body });
    expect([response.statusCode, response.body]).toEqual([201, document]);
    const [entry] = await admin.store.readSomeEntries('internal', [
      { kind: 'server', namespace: '', name: 'io.acme/exact' },
    ]);
    expect(entry?.versions[0]?.document).toBe(document);
    expect('polluted' in {}).toBe(false);
  });

  test.each([
    ['description', { description: 'é'.repeat(32_769) }, 65_538, 65_536],
    ['document', { 'x-data': 'x'.repeat(262_144) }, 262_216, 262_144],
  ])('refuses a %s that would be costly to search and to serve', async (what, more, bytes, most) => {
    const body = { server: server('io.acme/large', '1.0.0', more) };
    const response = await admin.send('POST', '/v1/entries', { body });
    const error = `invalid server: the ${what} has ${bytes} bytes, at most ${most} are allowed`;
    expect([response.statusCode, response.json().error]).toEqual([400, error]);
  });

  test('serves a bare name under which the door of a registry published it', async () => {
    const body = { name: 'my-server', version: '1', url: 'http://x.test/' };
    const response = await admin.send('POST', '/open/v0.1/publish', { body });
    expect([response.statusCode, response.json().description]).toEqual([201, '']);
    const read = await admin.send('GET', '/open/v0.1/servers/my-server/versions/latest');
    expect(read.json().server.remotes).toEqual([{ type: 'streamable-http', url: 'http://x.test/' }]);
  });

  test('refuses a bare name at the admin door', async () => {
    const response = await admin.send('POST', '/v1/entries', { body: { server: server('bare') } });
    expect([response.statusCode, response.json().error]).toEqual([
      400,
      'invalid server name: the name must have the form namespace/name',
    ]);
  });

  test('takes the members of the official document beside the flat ones', async () => {
    const body = {
      name: 'io.acme/full',
      version: '1.0.0',
      description: 'd',
      title: 'Full',
      url: 'https://full.test/sse',
      transport: 'sse',
      repository: { url: 'https://git.test/full' },
      packages: [{ registryType: 'npm', identifier: 'full' }],
      $schema: 'https://schema.test/',
      _meta: { 'io.modelcontextprotocol.registry/publisher-provided': { a: 1 } },
      unknown: 1,
    };
    const { unknown, url, transport, ...members } = body;
    const response = await admin.send('POST', '/open/v0.1/publish', { body });
    expect(response.statusCode).toBe(201);
    expect(response.json()).toEqual({ ...members, remotes: [{ type: transport, url }] });
    expect(unknown).toBe(1);
    const written = [
      '$schema',
      'name',
      'title',
      'description',
      'version',
      'repository',
      'packages',
      'remotes',
    ];
    expect(Object.keys(response.json())).toEqual([...written, '_meta']);
  });

  test.each(['1', 'v1', '1.0', '1.0.0-beta+5', '2026-01-02', 'main', '1.0.0-x', 'x1', '0.0.0-dev.x86'])(
    'takes the version %s',
    async (version) => {
      const response = await admin.send('POST', '/v1/entries', {
        body: wrapped('io.acme/versions', version),
      });
      expect(response.statusCode).toBe(201);
    },
  );

  test.each([
    ['', 'the version is empty'],
    ['latest', 'the version must not be the word "latest"'],
    ['^1.2', 'the version must be one version, not the range "^1.2"'],
    ['~1.2', 'the version must be one version, not the range "~1.2"'],
    ['>=1', 'the version must be one version, not the range ">=1"'],
    ['<2', 'the version must be one version, not the range "<2"'],
    ['=1', 'the version must be one version, not the range "=1"'],
    ['1.x', 'the version must be one version, not the range "1.x"'],
    ['1.*', 'the version must be one version, not the range "1.*"'],
    ['1.X.2', 'the version must be one version, not the range "1.X.2"'],
    ['*', 'the version must be one version, not the range "*"'],
    ['1||2', 'the version must be one version, not the range "1||2"'],
    ['1 2', 'the version holds white space or a control character'],
    ['a'.repeat(256), 'the version has 256 characters, at most 255 are allowed'],
  ])('refuses the version "%s"', async (version, error) => {
    const response = await admin.send('POST', '/v1/entries', { body: wrapped('io.acme/versions', version) });
    expect([response.statusCode, response.json().error]).toEqual([400, `invalid version: ${error}`]);
  });

  test.each<[rule: string, url: string, body: unknown, error: RegExp]>([
    ['no JSON', '/v1/entries', '{"server"', /^invalid request body: not valid JSON at line 1, column \d+$/],
    ['an empty body', '/v1/entries', '', /^invalid request body: it is empty$/],
    ['a list', '/v1/entries', '[]', /^invalid request body: expected an object$/],
    [
      'a remote that no client can open',
      '/open/v0.1/publish',
      { name: 'io.acme/ftp', version: '1.0.0', remotes: [{ type: 'sse', url: 'ftp://files.test/' }] },
      /^invalid server: remotes\[0\]\.url must be an http or https URL$/,
    ],
    [
      'bytes that are no text',
      '/v1/entries',
      Buffer.from([0x7b, 0xff, 0x7d]),
      /^invalid request body: not UTF-8 text$/,
    ],
    [
      'a member twice',
      '/v1/entries',
      '{"claims":{},"claims":{}}',
      /the member "claims" occurs twice in one object$/,
    ],
    ['deep nesting', '/v1/entries', `{"a":${'['.repeat(500)}${']'.repeat(500)}}`, /nested too deeply$/],
    ['no payload', '/v1/entries', {}, /^exactly one of 'server', 'skill', or 'plugin' must be provided$/],
    ['two payloads', '/v1/entries', { server: {}, skill: {} }, /^exactly one of/],
    [
      'a payload of a wrong type',
      '/v1/entries',
      { server: 'x' },
      /^invalid server name: the name must be a text$/,
    ],
    [
      'claims of a wrong type',
      '/v1/entries',
      { ...wrapped('a/b', '1'), claims: { n: 5 } },
      /^claim "n": value must be/,
    ],
    [
      'claims that are null',
      '/v1/entries',
      { ...wrapped('a/b', '1'), claims: null },
      /^claims must be a map/,
    ],
    ['a name of a wrong form', '/v1/entries', wrapped('a/b/c', '1'), /^invalid server name: /],
    [
      'no description at the admin door',
      '/v1/entries',
      { server: { name: 'a/b', version: '1' } },
      /^invalid server: description/,
    ],
    [
      'a skill without namespace',
      '/v1/entries',
      { skill: { name: 'a', version: '1', description: 'd' } },
      /^invalid skill: namespace/,
    ],
    [
      'a skill without version',
      '/v1/entries',
      { skill: { namespace: 'io.a', name: 'a', description: 'd' } },
      /^invalid version: /,
    ],
    [
      'a plugin with a bad status',
      '/v1/entries',
      { plugin: { namespace: 'io.a', name: 'a', version: '1', description: 'd', status: 'gone' } },
      /^invalid plugin: status/,
    ],
    ['no name', '/open/v0.1/publish', { version: '1' }, /^invalid server name: the name must be a text$/],
    ['no version', '/open/v0.1/publish', { name: 'a' }, /^invalid version: the version must be a text$/],
    [
      'a relative url',
      '/open/v0.1/publish',
      { name: 'a', version: '1', url: '/mcp' },
      /^invalid url "\/mcp": must be an absolute http or https URL$/,
    ],
    [
      'another scheme',
      '/open/v0.1/publish',
      { name: 'a', version: '1', url: 'ftp://a.test' },
      /^invalid url/,
    ],
    [
      'a url that is none',
      '/open/v0.1/publish',
      { name: 'a', version: '1', url: 5 },
      /^invalid url of type number/,
    ],
    [
      'another transport',
      '/open/v0.1/publish',
      { name: 'a', version: '1', url: 'http://a.test', transport: 'stdio' },
      /^invalid transport "stdio"/,
    ],
    [
      'url and remotes',
      '/open/v0.1/publish',
      { name: 'a', version: '1', url: 'http://a.test', remotes: [] },
      /^give either "url" or "remotes", not both$/,
    ],
  ])('refuses %s', async (_rule, url, body, error) => {
    const before = await admin.state();
    const response = await admin.send('POST', url, { body });
    expect([response.statusCode, response.json()]).toEqual([400, { error: expect.stringMatching(error) }]);
    expect(await admin.state()).toBe(before);
  });

  test("refuses a publisher's block of _meta above the limit", async () => {
    const meta = (bytes: number) => ({
      server: server('io.acme/meta', '1.0.0', {
        _meta: { 'io.modelcontextprotocol.registry/publisher-provided': { x: 'y'.repeat(bytes - 8) } },
      }),
    });
    const refused = await admin.send('POST', '/v1/entries', { body: meta(1001) });
    expect([refused.statusCode, refused.json().error]).toEqual([
      400,
      "the publisher's block of _meta has 1001 bytes, at most 1000 are allowed",
    ]);
    expect((await admin.send('POST', '/v1/entries', { body: meta(1000) })).statusCode).toBe(201);
  });

  test('refuses a body above 1 MiB with 413 and one that is no JSON by its type with 415', async () => {
    const large = await admin.send('POST', '/v1/entries', { body: ' '.repeat(1024 * 1024 + 1) });
    expect(large.statusCode).toBe(413);
    const typed = await admin.send('POST', '/v1/entries', {
      body: 'a=b',
      type: 'application/x-www-form-urlencoded',
    });
    expect(typed.statusCode).toBe(415);
  });
});

describe('one entry', () => {
  test.each([
    ['versions', { maxEntryVersions: 2, maxEntrySize: 1_000_000 }, '(2, or 1000000 bytes of documents)'],
    ['bytes', { maxEntryVersions: 100, maxEntrySize: 150 }, '(100, or 150 bytes of documents)'],
  ])('takes as many %s as the operator allows', async (_, limits, told) => {
    const admin = await adminUnderTest({ limits });
    onTestFinished(() => admin.close());
    const statuses: number[] = [];
    let error = '';
    for (const version of ['1.0.0', '1.1.0', '1.2.0']) {
      const response = await admin.send('POST', '/v1/entries', { body: wrapped('io.acme/full', version) });
      statuses.push(response.statusCode);
      ({ error } = response.json());
    }
    expect([statuses, error]).toEqual([
      [201, 201, 409],
      expect.stringContaining(`"io.acme/full" has as many versions as an entry may have ${told}`),
    ]);
  });
});
