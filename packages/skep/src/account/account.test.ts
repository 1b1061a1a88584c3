import { describe, expect, test } from 'vitest';
import { commandUnderTest, type CommandUnderTest } from '../command-under-test.fixture.ts';
import { registryServer, type ScriptedAnswer, type SeenRequest } from './registry-server.fixture.ts';

const ITEM = { server: { name: 'com.example/alpha', description: 'First', version: '1.0.0' } };
const LIST: ScriptedAnswer = [200, { servers: [ITEM], metadata: { count: 1 } }];
const TOKEN = 'Bearer abc.def';

async function using(address: string, more = ''): Promise<CommandUnderTest> {
  const skep = await commandUnderTest({ supervisor: 'none' });
  await skep.configure(
    `registry_api_url: ${address}/registry/acme\nallow_private_registry_ip: true\n${more}`,
  );
  return skep;
}
async function withToken(skep: CommandUnderTest, address: string, token = 'abc.def\n') {
  return { env: { SKEP_REGISTRY: address, SKEP_TOKEN_FILE: await skep.write('token', token) } };
}
const forTheSignedIn = ({ authorization, line }: SeenRequest): ScriptedAnswer => {
  if (authorization !== TOKEN) return [401, { error: 'missing or malformed authorization header' }];
  if (line.includes('/versions/latest')) return [200, ITEM];
  return line.startsWith('GET /registry/acme/v0.1/servers') ? LIST : undefined;
};

describe('the catalogue of a registry that wants to know who asks', () => {
  test.each(['search alpha', 'registry list', 'info com.example/alpha'])(
    'is read by skep %s with the token of SKEP_TOKEN_FILE',
    async (line) => {
      const { address, seen } = await registryServer(forTheSignedIn);
      const skep = await using(address);
      expect(await skep.output(line, await withToken(skep, address))).toContain('com.example/alpha');
      expect(new Set(seen.map(({ authorization }) => authorization))).toEqual(new Set([TOKEN]));
    },
  );

  test('completes names for those who are signed in, and none for others', async () => {
    const { address } = await registryServer(forTheSignedIn);
    const skep = await using(address);
    const words = ['complete', '--', 'run', 'com'];
    expect((await skep.run(words, await withToken(skep, address))).out).toContain('com.example/alpha');
    expect((await skep.run(words)).out).not.toContain('com.example/alpha');
  });

  test.each(['search alpha', 'info com.example/alpha', 'run com.example/alpha'])(
    'says to skep %s that nobody is signed in',
    async (line) => {
      const { address } = await registryServer(forTheSignedIn);
      expect(await (await using(address)).refusal(line)).toBe(
        `Error: ${new URL(address).host}/registry/acme wants to know who asks, and you are signed in as nobody; ` +
          `sign in with skep login ${address}/registry/acme\n`,
      );
    },
  );

  test('says the same where a sign-in is configured, and nothing is kept of it', async () => {
    const { address, seen } = await registryServer(forTheSignedIn);
    const auth = `registry_auth:\n  type: oauth\n  oauth:\n    server: ${address}\n`;
    expect(await (await using(address, auth)).refusal('search alpha')).toContain(
      'you are signed in as nobody',
    );
    expect(seen).toEqual([]);
  });

  test('says of a refused token that it may have expired', async () => {
    const { address } = await registryServer(forTheSignedIn);
    const skep = await using(address);
    expect(await skep.refusal('search alpha', await withToken(skep, address, 'old'))).toContain(
      'does not accept the token of SKEP_TOKEN_FILE; it may have expired',
    );
  });

  test('passes on what the gate says', async () => {
    const { address } = await registryServer(() => [
      403,
      { error: 'forbidden: insufficient claims for registry' },
    ]);
    const skep = await using(address);
    expect(await skep.refusal('search alpha', await withToken(skep, address))).toBe(
      `Error: ${new URL(address).host}/registry/acme refuses: forbidden: insufficient claims for registry; see who you are there with skep whoami\n`,
    );
  });

  test('sends the token nowhere else, though it redirects there', async () => {
    const other = await registryServer(() => LIST);
    const { address, seen } = await registryServer(({ line }) => other.address + (line.split(' ')[1] ?? ''));
    const skep = await using(address);
    expect(await skep.refusal('search alpha', await withToken(skep, address))).toContain(
      'redirects, and what proves who you are goes to no other address',
    );
    expect([seen.length, other.seen]).toEqual([1, []]);
  });

  test('is not shown a token of SKEP_TOKEN_FILE that nobody said is for it', async () => {
    const { address, seen } = await registryServer(forTheSignedIn);
    const skep = await using(address);
    const other = await withToken(skep, 'https://other.test');
    const line = `Error: ${new URL(address).host}/registry/acme wants to know who asks`;
    for (const env of [other.env, { ...other.env, SKEP_REGISTRY: '' }])
      expect(await skep.refusal('search alpha', { env })).toContain(line);
    expect(seen.map(({ authorization }) => authorization)).toEqual([undefined, undefined]);
    const auth = `registry_auth:\n  type: oauth\n  oauth:\n    server: ${address}\n`;
    expect(await (await using(address, auth)).output('search alpha', other)).toContain('com.example/alpha');
  });

  test.each(['', 'two words', 'a\nb'])('takes no file that holds no token: %j', async (text) => {
    const { address, seen } = await registryServer(forTheSignedIn);
    const skep = await using(address);
    const said = await skep.refusal('search alpha', await withToken(skep, address, text));
    expect(said).toContain('the file of SKEP_TOKEN_FILE holds no token');
    expect(said).not.toContain('two');
    expect(seen).toEqual([]);
  });
});

describe('skep whoami', () => {
  const account = ({ line, authorization }: SeenRequest): ScriptedAnswer => {
    if (authorization !== TOKEN) return [401, { error: 'no' }];
    if (line === 'GET /v1/me') return [200, { subject: 'alice', roles: ['manageEntries'] }];
    return line === 'GET /v1/registries'
      ? [200, { registries: [{ name: 'acme' }, { name: 'data' }] }]
      : undefined;
  };

  test('shows who one is, which registries there are, and which is used', async () => {
    const { address } = await registryServer(account);
    const skep = await using(address);
    const token = await withToken(skep, address);
    expect(await skep.output('whoami', token)).toBe(
      `Server:       ${new URL(address).host}\nSigned in as: alice\nRoles:        manageEntries\n` +
        'Registries:   acme (in use), data\nBy:           the token of SKEP_TOKEN_FILE\n',
    );
    expect(JSON.parse(await skep.output('whoami --format json', token))).toEqual({
      server: address,
      subject: 'alice',
      roles: ['manageEntries'],
      registries: [
        { name: 'acme', in_use: true },
        { name: 'data', in_use: false },
      ],
    });
  });

  test('says that nobody is signed in', async () => {
    const skep = await commandUnderTest({ supervisor: 'none' });
    expect(await skep.refusal('whoami')).toContain('you are signed in as nobody; sign in with skep login');
  });
});

describe('skep config set-registry', () => {
  const server = ({ line }: SeenRequest): ScriptedAnswer => {
    if (line.startsWith('GET /registry/acme/v0.1/servers')) return LIST;
    return line === 'GET /v1/registries'
      ? [200, { registries: [{ name: 'acme' }, { name: 'data' }] }]
      : undefined;
  };

  test('lists the registries of a server, of which one has to be named', async () => {
    const { address } = await registryServer(server);
    const { host } = new URL(address);
    const skep = await commandUnderTest({ supervisor: 'none' });
    expect(await skep.refusal(`config set-registry --allow-private-ip ${address}`)).toBe(
      `Error: ${host} has several registries; there are: acme, data; name one: skep config set-registry ${address}/registry/acme\n`,
    );
    expect(await skep.refusal(`config set-registry --allow-private-ip ${address}/registry/none`)).toBe(
      `Error: ${host} has no registry "none"; there are: acme, data\n`,
    );
    await skep.output(`config set-registry --allow-private-ip ${address}/registry/acme`);
    expect(await skep.output('config get-registry')).toContain('/registry/acme (API endpoint)');
  });

  test('takes the only registry of a server', async () => {
    const { address } = await registryServer(({ line }) =>
      line === 'GET /v1/registries' ? [200, { registries: [{ name: 'acme' }] }] : undefined,
    );
    const skep = await commandUnderTest({ supervisor: 'none' });
    const { err } = await skep.run(`config set-registry --allow-private-ip ${address}`);
    expect(err).toBe(`Servers are now looked up in ${address}/registry/acme\n`);
  });

  test('keeps how one signs in, asks nobody, and says how to go on', async () => {
    const { address } = await registryServer(() => [401, { error: 'no' }]);
    const skep = await commandUnderTest({ supervisor: 'none' });
    const words = `config set-registry --allow-private-ip ${address}/registry/acme --issuer https://idp.example`;
    const { status, err } = await skep.run(
      `${words} --client-id skep --scopes openid,api --audience urn:mcp`,
    );
    expect([status, err]).toEqual([
      0,
      expect.stringContaining(
        `It wants to know who asks: sign in with skep login ${address}/registry/acme\n`,
      ),
    ]);
    expect(JSON.parse(await skep.output('config list --format json'))).toMatchObject({
      'registry_auth.type': 'oauth',
      'registry_auth.oauth.server': address,
      'registry_auth.oauth.issuer': 'https://idp.example',
      'registry_auth.oauth.client_id': 'skep',
      'registry_auth.oauth.audience': 'urn:mcp',
      'registry_auth.oauth.scopes': 'openid,api',
    });
    await skep.output('config unset-registry');
    expect(await skep.read(skep.places.configFile)).toBe('');
  });

  test('shows a token only to a registry that wants to know who asks, and to no file', async () => {
    const open = await registryServer(() => LIST);
    const closed = await registryServer(forTheSignedIn);
    const file = await registryServer(() => [401, { error: 'no' }]);
    const skep = await commandUnderTest({ supervisor: 'none' });
    for (const [{ address }, path] of [
      [open, ''],
      [closed, '/registry/acme'],
      [file, '/x.json'],
    ] as const)
      await skep.run(
        `config set-registry --allow-private-ip ${address}${path}`,
        await withToken(skep, address),
      );
    const shown = ({ seen }: typeof open) => seen.map(({ authorization }) => authorization);
    expect([open, closed, file].map(shown)).toEqual([[undefined], [undefined, TOKEN], [undefined]]);
  });

  test('can be used where the sign-in has ended', async () => {
    const { address } = await registryServer(() => [401, { error: 'expired' }]);
    const skep = await commandUnderTest({ supervisor: 'none' });
    const { status, err } = await skep.run(
      `config set-registry --allow-private-ip ${address}/registry/acme`,
      await withToken(skep, address),
    );
    expect([status, err]).toEqual([0, expect.stringContaining('It wants to know who asks: sign in with')]);
  });

  test('forgets how one signs in to another server', async () => {
    const [one, other] = [await registryServer(() => [401]), await registryServer(() => LIST)];
    const skep = await commandUnderTest({ supervisor: 'none' });
    await skep.output(`config set-registry --allow-private-ip ${one.address} --issuer https://idp.example`);
    await skep.output(`config set-registry --allow-private-ip ${other.address}`);
    expect(await skep.read(skep.places.configFile)).not.toContain('registry_auth');
  });
});
