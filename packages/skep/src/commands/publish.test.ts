import { systemClock } from '@skep/core/time/clock.ts';
import { describe, expect, test } from 'vitest';
import { registryServer, type ScriptedAnswer, type SeenRequest } from '../account/registry-server.fixture.ts';
import { commandUnderTest, type CommandUnderTest } from '../command-under-test.fixture.ts';

const DOCUMENT = {
  name: 'io.acme/weather',
  description: 'Forecasts',
  version: '1.0.0',
  remotes: [{ type: 'streamable-http', url: 'https://weather.acme.example/mcp' }],
};
/** As people write it: what is between the tokens is theirs, and so are numbers that JavaScript does not have. */
const TEXT = `{ "x-big": 12345678901234567890,\n${JSON.stringify(DOCUMENT).slice(1)}\n`;
const STORED: ScriptedAnswer = [201, DOCUMENT];

/** Nobody waits for a pause. */
const PATIENT = { ...systemClock, sleep: async () => undefined };

const withDocument = (content: string | object = TEXT): Promise<CommandUnderTest> =>
  commandUnderTest({ supervisor: 'none', files: { 'server.json': content }, clock: PATIENT });

async function withToken(
  skep: CommandUnderTest,
): Promise<{ readonly env: Readonly<Record<string, string>> }> {
  return { env: { SKEP_TOKEN_FILE: await skep.write('token', 'abc.def-123\n') } };
}
/** A registry that holds readers to claims. */
const enforcing =
  (more: (request: SeenRequest) => ScriptedAnswer) =>
  (request: SeenRequest): ScriptedAnswer =>
    request.line.startsWith('POST /v1/explain') ? [200, { mode: 'full', findings: [] }] : more(request);
const only =
  (line: string, answer: ScriptedAnswer) =>
  (request: SeenRequest): ScriptedAnswer =>
    request.line === line ? answer : undefined;

describe('skep publish', () => {
  test('sends the document byte for byte to the registry that is named', async () => {
    const skep = await withDocument();
    const { address, seen } = await registryServer(only('POST /registry/data/v0.1/publish', STORED));
    const registry = `${address}/registry/data`;
    const out = await skep.output(`publish --registry ${registry} --allow-private-ip`);
    expect(out).toBe(`Published io.acme/weather 1.0.0 to data at ${new URL(address).host}\n`);
    expect(seen).toEqual([
      { line: 'POST /registry/data/v0.1/publish', authorization: undefined, body: TEXT.trim() },
    ]);
  });

  test('sends claims beside it, each value that is given', async () => {
    const skep = await withDocument();
    const { address, seen } = await registryServer(
      enforcing(only('POST /registry/data/v0.1/publish', STORED)),
    );
    await skep.output([
      ...`publish --registry ${address}/registry/data --allow-private-ip`.split(' '),
      '--claim',
      'team=data',
      '--claim',
      'team=platform',
      '--claim',
      'org=a=b',
    ]);
    expect(seen.map(({ body }) => body).at(-1)).toBe(
      `{"server":${TEXT.trim()},"claims":{"team":["data","platform"],"org":"a=b"}}`,
    );
  });

  test.each<[why: string, explained: ScriptedAnswer, said: string]>([
    [
      'enforces none',
      [200, { mode: 'auth-only', findings: [] }],
      'enforces no claims, so others would see it too',
    ],
    ['does not know them', undefined, 'does not say that it enforces claims, so others may see it too'],
  ])('sends no claims to a registry that %s', async (_, explained, said) => {
    const skep = await withDocument();
    const { address, seen } = await registryServer(({ line }) => {
      if (line.startsWith('POST /v1/explain')) return explained;
      return line.startsWith('GET ') ? [200, { servers: [] }] : STORED;
    });
    for (const dryRun of ['', '--dry-run '])
      expect(
        (await skep.run(`publish ${dryRun}--registry ${address} --allow-private-ip --claim team=data`)).err,
      ).toContain(`${said}; leave --claim out where everybody there may see it`);
    expect(seen.map(({ line }) => line)).not.toContain('POST /v0.1/publish');
  });

  test('takes the door of the whole server where no registry is named', async () => {
    const skep = await withDocument();
    const { address, seen } = await registryServer(({ line }) => {
      if (line === 'GET /v1/registries') return [200, { registries: [] }];
      return line === 'POST /v1/entries' ? STORED : undefined;
    });
    await skep.output(`publish --registry ${address} --allow-private-ip`);
    expect(seen.map(({ line, body }) => [line, body])).toEqual([
      ['GET /v1/registries', ''],
      ['POST /v1/entries', `{"server":${TEXT.trim()}}`],
    ]);
  });

  test.each([404, 405, 501])('sends the document to one door only, and tells its %i', async (status) => {
    const skep = await withDocument();
    const { address, seen } = await registryServer(({ line }) =>
      line === 'POST /v0.1/publish' ? [status, { error: 'no publishing here' }] : undefined,
    );
    expect(await skep.refusal(`publish --registry ${address} --allow-private-ip`)).toContain(
      'does not take it: no publishing here; check the address of the registry',
    );
    expect(seen.map(({ line }) => line)).toEqual(['GET /v1/registries', 'POST /v0.1/publish']);
  });

  describe('whose answer was lost', () => {
    const POST = 'POST /registry/data/v0.1/publish';
    const TAKEN: ScriptedAnswer = [409, { error: 'version already exists: io.acme/weather@1.0.0' }];
    const AT = 'publish --registry {}/registry/data --allow-private-ip';
    /** Loses its answers to the first `lost` publishes; then tells what is stored. */
    const losing =
      (lost: number, how: ScriptedAnswer, { after = STORED, stored = {}, claims = {} } = {}) =>
      ({ line }: SeenRequest): ScriptedAnswer => {
        if (line === POST) return (lost -= 1) >= 0 ? how : after;
        if (line.startsWith('POST /v1/explain')) return [200, { mode: 'full', findings: [] }];
        if (line === 'GET /v1/entries/server/io.acme%2Fweather/claims') return [200, { claims }];
        return line.includes('/versions/1.0.0')
          ? [200, { server: { ...DOCUMENT, ...stored }, _meta: {} }]
          : undefined;
      };
    const PLAIN = JSON.stringify(DOCUMENT);

    test.each<[why: string, how: ScriptedAnswer, times: number]>([
      ['the connection ended', null, 2],
      ['a gateway lost patience', [504, { error: 'gateway timeout' }], 2],
      ['it cannot be read', [200, Buffer.from('<p>Thank you</p>')], 2],
      ['only its words are missing', [201], 1],
    ])('is sent once more where it has to be: %s', async (_, how, times) => {
      const skep = await withDocument(PLAIN);
      const { address, seen } = await registryServer(losing(1, how));
      expect(await skep.output(AT.replace('{}', address))).toContain('Published io.acme/weather 1.0.0');
      expect(seen.map(({ line }) => line)).toEqual(Array.from({ length: times }, () => POST));
    });

    test.each<[why: string, content: object, again: ScriptedAnswer, registry: string]>([
      [
        'a skill is compared with none',
        { $schema: 'x', skill: { name: 'a', namespace: 'b', version: '1.0.0' } },
        TAKEN,
        '/registry/data',
      ],
      ['what is stored cannot be read', DOCUMENT, TAKEN, '/registry/hidden'],
      ['the address is that of a whole server', DOCUMENT, TAKEN, ''],
      ['the registry is away then', DOCUMENT, [503, { error: 'service not ready' }], '/registry/data'],
      ['the registry refuses then', DOCUMENT, [403, { error: 'forbidden' }], '/registry/data'],
    ])('may be done, and is told so, where %s', async (_, content, again, registry) => {
      const skep = await withDocument(content);
      let posts = 0;
      const { address } = await registryServer(({ line }) => {
        if (line === 'GET /v1/registries') return [200, { registries: [] }];
        if (!line.startsWith('POST')) return undefined;
        posts += 1;
        return posts === 1 ? null : again;
      });
      expect(await skep.refusal(`publish --registry ${address}${registry} --allow-private-ip`)).toMatch(
        /did not confirm it, and may have done it: .*; asked again: .*; see whether it was done; the command/,
      );
      expect(posts).toBe(2);
    });

    test('was done where the same is stored', async () => {
      const skep = await withDocument(PLAIN);
      const { address } = await registryServer(losing(1, null, { after: TAKEN }));
      expect(await skep.output(AT.replace('{}', address))).toContain('Published io.acme/weather 1.0.0');
      const labelled = await registryServer(losing(1, null, { after: TAKEN, claims: { team: ['data'] } }));
      expect(await skep.output(`${AT.replace('{}', labelled.address)} --claim team=data`)).toContain(
        'Published',
      );
    });

    test.each([
      ['another document', { stored: { description: 'Others' } }, ''],
      ['other claims', { claims: { team: 'hr' } }, ' --claim team=data'],
      ['claims, where none are given', { claims: { team: 'hr' } }, ''],
    ])('was not where %s is stored', async (_, more, claims) => {
      const skep = await withDocument(PLAIN);
      const { address } = await registryServer(losing(1, null, { after: TAKEN, ...more }));
      expect(await skep.refusal(AT.replace('{}', address) + claims)).toContain('version already exists');
    });

    test('may be done where the second is lost too', async () => {
      const skep = await withDocument(PLAIN);
      const { address, seen } = await registryServer(losing(9, null));
      expect(await skep.refusal(AT.replace('{}', address))).toMatch(
        /did not confirm it, and may have done it: cannot reach .*; see whether it was done; the command can be given again/,
      );
      expect(seen).toHaveLength(2);
    });
  });

  test('publishes to the registry in use, and to one beside it by its name', async () => {
    const skep = await withDocument();
    const { address, seen } = await registryServer(({ line }) =>
      line.startsWith('POST') ? STORED : undefined,
    );
    await skep.configure(`registry_api_url: ${address}/registry/data\nallow_private_registry_ip: true\n`);
    await skep.output('publish');
    await skep.output('publish --registry other');
    expect(seen.map(({ line }) => line)).toEqual([
      'POST /registry/data/v0.1/publish',
      'POST /registry/other/v0.1/publish',
    ]);
  });

  test('shows the token of SKEP_TOKEN_FILE, and takes one that was renewed meanwhile', async () => {
    const skep = await withDocument();
    const token = await withToken(skep);
    const { address, seen } = await registryServer(async ({ authorization }) => {
      if (authorization === 'Bearer new') return STORED;
      await skep.write('token', 'new');
      return [401, { error: 'token validation failed' }];
    });
    await skep.output(`publish --registry ${address}/registry/data --allow-private-ip`, token);
    expect(seen.map(({ authorization }) => authorization)).toEqual(['Bearer abc.def-123', 'Bearer new']);
  });

  test('shows that token to the registry in use only where SKEP_REGISTRY says so', async () => {
    const skep = await withDocument();
    const { address, seen } = await registryServer(() => STORED);
    await skep.configure(`registry_api_url: ${address}/registry/data\nallow_private_registry_ip: true\n`);
    const { env } = await withToken(skep);
    await skep.output('publish', { env });
    await skep.output('publish --allow-private-ip', {
      env: { ...env, SKEP_REGISTRY: `${address}/registry/other` },
    });
    expect(seen.map(({ line, authorization }) => [line, authorization])).toEqual([
      ['POST /registry/data/v0.1/publish', undefined],
      ['POST /registry/other/v0.1/publish', 'Bearer abc.def-123'],
    ]);
  });

  test.each<[status: number, said: string, message: RegExp]>([
    [401, 'token validation failed', /does not accept the token of SKEP_TOKEN_FILE; it may have expired/],
    [
      403,
      'insufficient claims for registry',
      /refuses: insufficient claims for registry; skep publish --dry-run says what you lack/,
    ],
    [400, 'invalid version: it is a range', /does not take it: invalid version: it is a range/],
    [409, 'version already exists: io.acme/weather@1.0.0', /does not take it: version already exists: /],
    [500, 'internal', /answered with status 500/],
  ])('says what a %i means: %s', async (status, error, message) => {
    const skep = await withDocument();
    const { address } = await registryServer(() => [status, { error }]);
    const line = `publish --registry ${address}/registry/data --allow-private-ip`;
    expect(await skep.refusal(line, await withToken(skep))).toMatch(message);
  });

  test.each<[status: number, said: string]>([
    [409, 'version already exists: io.acme/weather@1.0.0'],
    // The official registry's words.
    [400, 'invalid version: cannot publish duplicate version'],
  ])('says of a version that is there already (%i %s) how to publish another', async (status, error) => {
    const skep = await withDocument();
    const { address } = await registryServer(() => [status, { error }]);
    const line = `publish --registry ${address}/registry/data --allow-private-ip`;
    expect(await skep.refusal(line, await withToken(skep))).toContain(
      `does not take it: ${error}; raise "version" in "server.json", or delete what is there: skep unpublish io.acme/weather@1.0.0\n`,
    );
  });

  test('says that nobody is signed in where a registry asks who that is', async () => {
    const skep = await withDocument();
    const { address } = await registryServer(() => [401, { error: 'missing authorization header' }]);
    expect(await skep.refusal(`publish --registry ${address} --allow-private-ip`)).toContain(
      `wants to know who asks, and you are signed in as nobody; sign in with skep login ${address}`,
    );
  });

  test('says to nobody that they may sign in where a registry refuses', async () => {
    const skep = await withDocument();
    const { address } = await registryServer(() => [403, { error: 'forbidden' }]);
    const line = `publish --registry ${address}/registry/data --allow-private-ip`;
    expect(await skep.refusal(line)).toContain(`refuses: forbidden; sign in with skep login ${address}`);
  });

  test('sends the token neither after a redirect nor in the clear', async () => {
    const skep = await withDocument();
    const other = await registryServer(() => STORED);
    const { address } = await registryServer(() => `${other.address}/registry/data/v0.1/publish`);
    const line = `publish --registry ${address}/registry/data --allow-private-ip`;
    expect(await skep.refusal(line, await withToken(skep))).toContain(
      'redirects, and what proves who you are',
    );
    expect(other.seen).toEqual([]);
    const clear = 'publish --registry http://registry.test/registry/data --allow-private-ip';
    expect(await skep.refusal(clear, await withToken(skep))).toContain('would be read by whoever listens');
  });

  test('warns of what the official schema finds, and leaves it to the registry', async () => {
    const skep = await withDocument({ name: 'weather', version: '1.0.0', description: 'd' });
    const { address } = await registryServer(() => STORED);
    const { status, err } = await skep.run(`publish --registry ${address} --allow-private-ip`);
    expect([status, err]).toEqual([
      0,
      'Warning: not valid by the official schema: name: must be namespace/name, like io.github.you/weather\n',
    ]);
  });

  test.each<[why: string, content: string | object, line: string, said: RegExp]>([
    ['no document', '', 'publish absent.json', /"WORK\/absent\.json".*; skep publish --init writes one/],
    ['no JSON', '{"name": }', 'publish', /"server\.json" is not valid JSON at line 1, column 10/],
    ['no object', '[]', 'publish', /"server\.json" is no JSON object/],
    ['no name', '{}', 'publish', /has no name or no version/],
    [
      'claims in the file of a skill',
      { skill: {}, claims: { team: 'data' } },
      'publish',
      /"claims" beside its skill, which would not be published; give claims with --claim/,
    ],
    ['no registry', DOCUMENT, 'publish', /no registry to publish to; give --registry ADDRESS/],
    [
      'a claim without value',
      DOCUMENT,
      'publish --claim team',
      /invalid claim "team"; write it as name=value/,
    ],
    ['a name beside the document', DOCUMENT, 'publish --name a/b', /--name is for --init/],
    ['no address', DOCUMENT, 'publish --registry ftp://x', /invalid address of a registry: "ftp:\/\/x"/],
    ['plain http', DOCUMENT, 'publish --registry http://x.test', /plain http is not safe/],
  ])('refuses %s', async (_, content, line, said) => {
    const skep = await withDocument(content);
    expect(await skep.refusal(line)).toMatch(said);
  });
});

describe('skep publish --dry-run', () => {
  const report = (mode: string, findings: readonly object[], more: object): object => ({
    mode,
    caller: { subject: 'paula', roles: [] },
    findings,
    ...more,
  });
  const PASSED = [{ layer: 'publish', subject: 'io.acme/weather@1.0.0', allowed: true }];
  const governed = (mode: string, findings: readonly object[] = PASSED, more: object = {}) => {
    return ({ line }: SeenRequest): ScriptedAnswer => {
      if (line === 'POST /v1/explain?registry=data') return [200, report(mode, findings, more)];
      return line === 'GET /v1/registries/data'
        ? [200, { name: 'data', claims: { org: 'acme' } }]
        : undefined;
    };
  };

  test.each([
    ['full', '', 'super-admins only, because it has no claims; give them with --claim'],
    ['full', ' --claim team=data', 'super-admins, and who holds org=acme and team=data'],
    ['full', ' --claim org=acme', 'super-admins, and who holds org=acme'],
    ['full', ' --claim t=a --claim t=b', 'super-admins, and who holds org=acme and t=a and t=b'],
    ['auth-only', '', 'everyone who is signed in'],
    ['anonymous', '', 'everyone'],
  ])('in mode %s with "%s" says who would see it, and publishes nothing', async (mode, claims, seenBy) => {
    const skep = await withDocument();
    const { address, seen } = await registryServer(governed(mode));
    const out = await skep.output(
      `publish --dry-run --registry ${address}/registry/data --allow-private-ip${claims}`,
    );
    expect(out).toBe(
      'io.acme/weather 1.0.0 is a valid server document\n' +
        `data at ${new URL(address).host} takes it from paula\nWho would see it: ${seenBy}\n`,
    );
    expect(seen.map(({ line }) => line)).toEqual([
      'POST /v1/explain?registry=data',
      'GET /v1/registries/data',
    ]);
  });

  test('has the registry decide about the document and the claims', async () => {
    const skep = await withDocument();
    const { address, seen } = await registryServer(governed('full'));
    await skep.output(`publish --dry-run --registry ${address}/registry/data --allow-private-ip --claim a=b`);
    expect(seen[0]?.body).toBe(`{"server":${TEXT.trim()},"claims":{"a":"b"}}`);
  });

  test('says that one of several values is enough where it is', async () => {
    const skep = await withDocument();
    const { address } = await registryServer(governed('full', PASSED, { arrayMatch: 'any' }));
    const line = `publish --dry-run --registry ${address}/registry/data --allow-private-ip`;
    expect(await skep.output(`${line} --claim team=a --claim team=b`)).toContain(
      'who holds org=acme and (team=a or team=b)\n',
    );
  });

  test.each([
    ['role', 'manageEntries', 'you lack the role manageEntries: no rule grants it'],
    ['registry', 'data', 'you do not pass the gate of data: no rule grants it'],
    ['entry', 'other', 'no rule grants it (it takes: another version)'],
  ])('fails where the %s %s would refuse it', async (layer, subject, said) => {
    const skep = await withDocument();
    const refusal = { allowed: false, because: 'no rule grants it', remedy: 'another version' };
    const findings = [
      { ...refusal, layer, subject },
      { ...refusal, layer: 'publish', subject: 'io.acme/weather@1.0.0' },
    ];
    const { address } = await registryServer(governed('full', findings));
    const { status, out, err } = await skep.run(
      `publish --dry-run --registry ${address}/registry/data --allow-private-ip`,
    );
    expect([status, err]).toEqual([1, expect.stringContaining(`would refuse it: ${said}`)]);
    expect(out).not.toContain('takes it');
  });

  test.each([
    [[400, { error: 'invalid version: it is a range' }], 'does not take it: invalid version: it is a range'],
    [[404, { error: 'no such endpoint' }], 'there is no registry at '],
  ] as const)('fails in the words of the registry: %j', async (answer, said) => {
    const skep = await withDocument();
    const { address } = await registryServer(() => answer);
    const { status, err } = await skep.run(
      `publish --dry-run --registry ${address}/registry/data --allow-private-ip`,
    );
    expect([status, err]).toEqual([1, expect.stringContaining(said)]);
  });

  test('fails with all that the official schema finds', async () => {
    const skep = await withDocument({ name: 'weather', version: '1.0.0' });
    expect(await skep.refusal('publish --dry-run')).toContain(
      '"server.json" is not valid by the official schema: name: must be namespace/name, like io.github.you/weather; description: expected string, received undefined',
    );
  });

  test('says that other registries do not tell, and does without any', async () => {
    const skep = await withDocument();
    const { address } = await registryServer(({ line }) =>
      line.startsWith('GET /v0.1/servers') ? [200, { servers: [], metadata: { count: 0 } }] : undefined,
    );
    const { status, err } = await skep.run(`publish --dry-run --registry ${address} --allow-private-ip`);
    expect([status, err]).toEqual([0, `${new URL(address).host} does not tell who would see it\n`]);
    expect((await skep.run('publish --dry-run')).err).toContain('no registry is in use');
  });
});

describe('skep publish --init', () => {
  test('writes a document that can be tried out at once, and never replaces one', async () => {
    const skep = await commandUnderTest({ supervisor: 'none' });
    await skep.write('package.json', {
      name: 'weather',
      version: '2.0.0',
      description: 'Forecasts',
      repository: 'acme/weather',
    });
    expect(await skep.output('publish --init')).toBe('Wrote server.json for io.github.acme/weather\n');
    expect(await skep.output('publish --dry-run')).toContain('io.github.acme/weather 2.0.0 is a valid');
    expect(await skep.refusal('publish --init')).toContain('"server.json" is there already');
    expect(JSON.parse(await skep.output('publish --init --dry-run --name io.acme/w'))).toMatchObject({
      name: 'io.acme/w',
    });
  });
});

describe('what was published', () => {
  const GONE: ScriptedAnswer = [204];

  test.each([
    ['/registry/data', 'DELETE /registry/data/v0.1/servers/io.acme%2Fweather/versions/1.0.0'],
    ['', 'DELETE /v1/entries/server/io.acme%2Fweather/versions/1.0.0'],
  ])('is deleted by skep unpublish at "%s"', async (path, line) => {
    const skep = await commandUnderTest({ supervisor: 'none' });
    const { address, seen } = await registryServer(only(line, GONE));
    const out = await skep.output(
      `unpublish io.acme/weather@1.0.0 --registry ${address}${path} --allow-private-ip`,
    );
    expect([out, seen.length]).toEqual(['Deleted io.acme/weather 1.0.0\n', 1]);
  });

  test('that is not there is said with what shows what is', async () => {
    const skep = await commandUnderTest({ supervisor: 'none' });
    const { address } = await registryServer(() => [404, { error: 'not found' }]);
    for (const command of ['unpublish', 'deprecate'])
      expect(
        await skep.refusal(`${command} a/b@1 --registry ${address}/registry/data --allow-private-ip`),
      ).toContain('does not take it: not found; check name and version with skep info');
  });

  test.each([
    ['io.acme/weather@1.0.0', '/versions/1.0.0', 'io.acme/weather@1.0.0 is now deprecated'],
    ['io.acme/weather', '', 'All versions of io.acme/weather are now deprecated'],
  ])('is marked by skep deprecate %s', async (entry, path, said) => {
    const skep = await commandUnderTest({ supervisor: 'none' });
    const line = `PATCH /registry/data/v0/servers/io.acme%2Fweather${path}/status`;
    const { address, seen } = await registryServer(only(line, [200, {}]));
    const words = `deprecate ${entry} --registry ${address}/registry/data --allow-private-ip --message`;
    expect(await skep.output([...words.split(' '), 'use 2.0'])).toBe(`${said}\n`);
    expect(seen.map(({ body }) => body)).toEqual(['{"status":"deprecated","statusMessage":"use 2.0"}']);
  });

  test.each([
    [
      'unpublish io.acme/weather',
      'which version of io.acme/weather is to be deleted? write io.acme/weather@VERSION',
    ],
    ['unpublish @1', 'invalid server "@1"'],
    ['deprecate io.acme/weather@', 'invalid server "io.acme/weather@"'],
    ['deprecate io.acme/weather', 'no registry to publish to'],
  ])('%s is refused', async (line, said) => {
    const skep = await commandUnderTest({ supervisor: 'none' });
    expect(await skep.refusal(line)).toContain(said);
  });
});
