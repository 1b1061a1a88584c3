import { readFile } from 'node:fs/promises';
import { createServer, type IncomingMessage } from 'node:http';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { commandUnderTest, NOTHING_LEFT, type CommandLine } from '../command-under-test.fixture.ts';
import { MemoryKeyring } from '../secrets/keyring/keyring.fixture.ts';
import { catalogueOf } from './catalogue.fixture.ts';

const URL = 'http://127.0.0.1:9/mcp';
const RUN = `run ${URL} --name a1`;
const TOKEN = 'hunter2-of-the-bearer';
const AUTH = '--remote-auth';
const BY_HAND = `${AUTH}-authorize-url https://i.invalid/a ${AUTH}-token-url https://i.invalid/t`;
const secretly = () => ({
  keyrings: [new MemoryKeyring({ maxChars: 1_000_000 })],
  env: { SKEP_SECRETS_PROVIDER: 'keyring' },
});

const REMOTES = { remotes: [{ type: 'streamable-http', url: 'https://x.invalid/mcp' }] };
const catalogue = catalogueOf({
  'com.example/other': {
    ...REMOTES,
    extension: { oauth_config: { issuer: 'https://i.invalid', client_id: 'well-known', scopes: ['files'], resource: 'https://files.invalid/api', oauth_params: { audience: 'files' } } },
  },
  'com.example/plain': REMOTES,
  'com.example/own': {
    ...REMOTES,
    extension: { oauth_config: { issuer: 'https://i.invalid', scopes: ['a'], resource: 'https://x.invalid' } },
  },
  'com.example/near': {
    remotes: [{ type: 'streamable-http', url: 'https://x.invalid/mcp' }],
    extension: { oauth_config: { issuer: 'http://127.0.0.1:9/', client_id: 'c' } },
  },
}); // prettier-ignore

/** A server over HTTP that answers as told, for as long as the test. */
async function server(
  answer: (req: IncomingMessage) => { readonly status: number; readonly headers?: Record<string, string> },
) {
  const asked: string[] = [];
  const at = createServer((req, res) => {
    asked.push(`${req.method ?? ''} ${req.url ?? ''}`);
    const { status, headers = {} } = answer(req);
    res.writeHead(status, headers).end('{}');
  }).listen(0, '127.0.0.1');
  await once(at, 'listening');
  onTestFinished(async () => {
    at.closeAllConnections();
    await new Promise((resolve) => at.close(resolve));
  });
  return { asked, url: `http://127.0.0.1:${(at.address() as AddressInfo).port}/mcp` };
}

describe('signing in to a server elsewhere', () => {
  test.each<[string, CommandLine, string]>([
    ['an issuer beside endpoints', `${RUN} ${AUTH}-issuer https://i.invalid ${BY_HAND}`, '--remote-auth-issuer'],
    ['one endpoint alone', `${RUN} ${AUTH}-token-url https://i.invalid/t`, 'need --remote-auth-authorize-url and --remote-auth-client-id too'],
    ['endpoints without a client', `${RUN} ${BY_HAND}`, 'need --remote-auth-client-id too'],
    ['a secret twice', `${RUN} ${AUTH}-client-secret a ${AUTH}-client-secret-file b`, '--remote-auth-client-secret'],
    ['a token twice', `${RUN} ${AUTH}-bearer-token a ${AUTH}-bearer-token-file b`, '--remote-auth-bearer-token'],
    ['a secret of no client', `${RUN} ${AUTH}-client-secret a`, 'name it with --remote-auth-client-id'],
    ['an issuer that could be overheard', `${RUN} ${AUTH}-issuer http://i.invalid`, 'i.invalid could be overheard'],
    ['an issuer that is no address', `${RUN} ${AUTH}-issuer file:///etc/passwd`, 'invalid value for --remote-auth-issuer'],
    ['a server that could be overheard', `run http://x.invalid/mcp ${AUTH}`, 'x.invalid could be overheard'],
    ['an empty token', [...RUN.split(' '), `${AUTH}-bearer-token=`], '--remote-auth-bearer-token is empty'],
    ['an empty issuer', [...RUN.split(' '), `${AUTH}-issuer=`], '--remote-auth-issuer is empty'],
    ['a token that cannot be sent', [...RUN.split(' '), `${AUTH}-bearer-token`, 'a b'], 'the bearer token cannot be sent'],
    ['a token file that is not there', `${RUN} ${AUTH}-bearer-token-file nowhere`, 'nowhere'],
    ['a secret file that is not there', `${RUN} ${AUTH} ${AUTH}-client-id c ${AUTH}-client-secret-file nowhere`, 'nowhere'],
    ['a scope that is none', [...RUN.split(' '), `${AUTH}-scopes`, 'a b'], '"a b" is no scope'],
    ['a resource that is none', `${RUN} ${AUTH}-resource x#y`, 'invalid value for --remote-auth-resource'],
    ['a port for everybody', `${RUN} ${AUTH}-callback-port 80`, '--remote-auth-callback-port'],
    ['a token, and no place to keep it', `${RUN} ${AUTH}-bearer-token ${TOKEN}`, 'secrets provider not configured'],
    ['an issuer of this machine in the catalogue', 'run near', '"com.example/near" of the catalogue has people sign in at 127.0.0.1:9, which is no public address'],
  ])('is refused with %s, and nothing is made', async (_name, line, message) => {
    const skep = await commandUnderTest({ catalogue });
    const said = await skep.refusal(line);
    expect(said).toContain(message);
    expect(said).not.toContain(TOKEN);
    expect(await skep.left()).toEqual(NOTHING_LEFT);
  }); // prettier-ignore

  test('at an issuer for a token that a catalogue chooses is the person’s to agree to', async () => {
    const skep = await commandUnderTest({ ...secretly(), catalogue });
    const grants = [
      'have you sign in at "https://i.invalid"', 'sign you in as the client "well-known"', 'ask for the scopes "files"',
      'ask with "audience=files"', 'send x.invalid a token for "https://files.invalid/api"', 'send x.invalid the token',
    ];
    const refused = `"com.example/other" of the catalogue asks to ${grants.join(', ')}, which is not granted`;
    expect(await skep.refusal('run other')).toContain(refused);
    expect(await skep.refusal('run other', { agrees: false })).toContain(refused);
    expect(skep.asked).toHaveLength(1);
    expect(await skep.refusal('run other', { agrees: true })).not.toContain('granted');
    expect(skep.asked).toHaveLength(2);
    // Whoever names the issuer names all of it, and nothing of another's client is used there.
    const said = await skep.output(`run other --explain ${AUTH}-issuer https://mine.invalid`);
    expect(said).not.toMatch(/well-known|files/);
    expect(await skep.refusal('run own')).not.toContain('granted');
  }); // prettier-ignore

  test('is not asked for by a server that nobody can ask, and saved of nobody', async () => {
    const skep = await commandUnderTest();
    await skep.output(`${RUN} ${AUTH}-scopes a`);
    expect(await skep.output('auth status')).toBe('No server elsewhere is signed in to\n');
    const saved = JSON.parse(await readFile(join(skep.places.runConfigsDir, 'a1.json'), 'utf8'));
    expect(saved).not.toHaveProperty('remote_auth_config');
    expect((await skep.run('auth status fake')).err).toContain('fake');
  });

  test('is refreshed as patiently as variables say, which the workload keeps', async () => {
    const skep = await commandUnderTest();
    const env = {
      SKEP_TOKEN_REFRESH_INITIAL_RETRY_INTERVAL: '3s',
      SKEP_TOKEN_REFRESH_MAX_RETRY_INTERVAL: '4s',
      SKEP_TOKEN_REFRESH_MAX_ELAPSED_TIME: '5s',
      SKEP_TOKEN_REFRESH_MAX_TRIES: '6',
      SKEP_TOKEN_AUTH_RETRYING_TICK_INTERVAL: '7s',
      SKEP_TOKEN_AUTH_RETRYING_MAX_ELAPSED: '8m',
    };
    expect(await skep.run(RUN, { env })).toMatchObject({ status: 0 });
    const saved = JSON.parse(await readFile(join(skep.places.runConfigsDir, 'a1.json'), 'utf8'));
    expect(saved).toMatchObject({
      token_refresh_initial_retry_interval: '3s',
      token_refresh_max_retry_interval: '4s',
      token_refresh_max_elapsed_time: '5s',
      token_refresh_max_tries: 6,
      token_auth_retrying_tick_interval: '7s',
      token_auth_retrying_max_elapsed: '8m0s',
    });
  });

  test('of a service needs no page that nobody visits', async () => {
    const skep = await commandUnderTest(secretly());
    const service = `${AUTH}-client-credentials ${AUTH}-client-id c ${AUTH}-token-url https://i.invalid/t`;
    await skep.output(`${RUN} --explain ${service}`);
  });

  test('is refused by a server that wants it and does not say where, with what to do instead', async () => {
    const skep = await commandUnderTest(secretly());
    const { url, asked } = await server(() => ({ status: 401 }));
    const said = await skep.refusal(`run ${url} --name a1`);
    expect(said).toContain('--remote-auth-bearer-token-file or SKEP_REMOTE_AUTH_BEARER_TOKEN');
    expect(asked[0]).toBe('GET /mcp');
    expect(await skep.left()).toEqual(NOTHING_LEFT);
    await skep.output(`run ${url} --name a1 ${AUTH}=false`);
  });

  test('is not asked for by a server that wants another kind, which the person hears, and what to give instead', async () => {
    const skep = await commandUnderTest(secretly());
    const { url } = await server(() => ({ status: 401, headers: { 'www-authenticate': 'Basic realm="x"' } }));
    const { err, status } = await skep.run(`run ${url} --name a1`);
    expect([status, err]).toEqual([0, expect.stringMatching(/^Warning: 127\.0\.0\.1:\d+ asks for basic authentication.*--remote-forward-headers-secret Authorization=NAME\n/m)]);
    expect(await skep.refusal(`run ${url} --name a2 ${AUTH}`)).toContain('asks for basic authentication, not for a token');
    expect((await skep.run(`run ${URL} --name a3`)).err).toContain('Warning: cannot tell whether 127.0.0.1:9 wants a sign-in: ');
  }); // prettier-ignore

  test('is refused by what could be overheard, whoever answers there, before anything is asked about it', async () => {
    const skep = await commandUnderTest(secretly());
    const { url, asked } = await server(() => ({ status: 401 }));
    const open = url.replace('127.0.0.1', '0.0.0.0');
    expect(await skep.refusal(`run ${open} --name a1`)).toContain('signing in needs https: 0.0.0.0');
    expect(asked).toEqual(['GET /mcp']);
    await skep.output(`run ${open} --name a1 ${AUTH}=false`);
    expect(await skep.refusal('auth login a1')).toContain('signing in needs https: 0.0.0.0');
    expect(asked).toEqual(['GET /mcp']);
    await skep.write('in.json', { schema_version: 'v0.1.0', name: 'a2', remote_url: open, transport: 'streamable-http' });
    expect(await skep.refusal('run --from-config in.json --trust-config')).toContain('signing in needs https: 0.0.0.0');
    expect(asked).toEqual(['GET /mcp', 'GET /mcp']);
  }); // prettier-ignore

  test('is not asked of a server that gets headers, or the tokens of clients', async () => {
    const skep = await commandUnderTest(secretly());
    const { url, asked } = await server(() => ({ status: 401 }));
    await skep.output(`run ${url} --name a1 --remote-forward-headers X-A=1`);
    await skep.output(`run ${url} --name a2 --token-exchange-url https://i.invalid/t`);
    expect(asked).toEqual([]);
  });

  test('says what has no effect', async () => {
    const skep = await commandUnderTest(secretly());
    const told = async (line: string): Promise<string> => (await skep.run(line)).err;
    expect(await told(`run fake:1 --name b1 ${AUTH}-scopes a`)).toContain('Warning: --remote-auth-scopes has no effect on a server that runs here\n');
    expect(await told(`run ${URL} --name b2 ${AUTH}-bearer-token ${TOKEN} ${AUTH}-scopes a`)).toContain('Warning: --remote-auth-scopes has no effect beside a bearer token\n');
    expect(await told(`run ${URL} --name b3 ${AUTH}=false ${AUTH}-scopes a`)).toContain('Warning: --remote-auth-scopes has no effect with --remote-auth=false\n');
    expect(await told(`run http://x.invalid/mcp --name b4 ${AUTH}-bearer-token ${TOKEN}`)).toContain('is sent to x.invalid in the clear');
  }); // prettier-ignore
});

describe('a bearer token', () => {
  const everywhere = async (skep: Awaited<ReturnType<typeof commandUnderTest>>): Promise<string> => {
    await skep.output('export a1 out.json');
    const files = [join(skep.places.runConfigsDir, 'a1.json'), join(skep.cwd, 'out.json')];
    const texts = await Promise.all(files.map((file) => readFile(file, 'utf8')));
    return [...texts, await skep.output('status a1'), await skep.output('status a1 --format json')].join(
      '\n',
    );
  };

  test.each([
    ['flag', `${RUN} ${AUTH}-bearer-token ${TOKEN}`, {}],
    ['variable', RUN, { SKEP_REMOTE_AUTH_BEARER_TOKEN: TOKEN }],
  ])(
    'of a %s is sealed, goes with the workload, and is in nothing that is shown',
    async (_where, line, env) => {
      const skep = await commandUnderTest(secretly());
      const { out, err, status } = await skep.run(line, { env });
      expect(status, err).toBe(0);
      expect(await everywhere(skep)).not.toContain(TOKEN);
      expect(out + err).not.toContain(TOKEN);
      const saved = JSON.parse(await readFile(join(skep.places.runConfigsDir, 'a1.json'), 'utf8'));
      expect(saved).toMatchObject({ remote_auth_config: {}, env_vars: {}, secret_env: [] });
      expect(saved.secrets).toEqual([expect.stringMatching(/,target=SKEP_REMOTE_AUTH_BEARER_TOKEN$/)]);
      expect(await skep.output('auth status a1')).toContain('bearer token');
      expect((await skep.run('auth login a1')).err).toContain('shows its server a bearer token');
      await skep.output('stop a1');
      await skep.output('start a1');
      await skep.output('rm a1');
      expect(await skep.output('secret list --system')).toContain('No secrets found');
      await skep.output('run --from-config out.json --trust-config', {
        env: { SKEP_SECRET_SKEP_REMOTE_AUTH_BEARER_TOKEN: TOKEN },
      });
      expect(await everywhere(skep)).not.toContain(TOKEN);
      expect(await skep.output('auth status a1')).toContain('bearer token');
    },
  );

  test.each([
    ['a flag', `${RUN} ${AUTH}-bearer-token ${TOKEN}`, 1],
    ['a file', `${RUN} ${AUTH}-bearer-token-file token`, 0],
  ])('of %s counts before that of the variable', async (_where, line, sealed) => {
    const skep = await commandUnderTest({ ...secretly(), files: { token: ` ${TOKEN}\n` } });
    const env = { SKEP_REMOTE_AUTH_BEARER_TOKEN: 'hunter2-of-the-variable' };
    const { status, err } = await skep.run(line, { env });
    expect(status, err).toBe(0);
    expect(err).not.toContain('is shown the token of SKEP_REMOTE_AUTH_BEARER_TOKEN');
    const saved = JSON.parse(await readFile(join(skep.places.runConfigsDir, 'a1.json'), 'utf8'));
    expect(saved.secrets ?? []).toHaveLength(sealed);
    const file = { bearer_token_file: join(skep.cwd, 'token') };
    expect(saved.remote_auth_config).toEqual(sealed === 0 ? file : {});
  });

  test.each([
    ['empty', 'empty', 'is empty'],
    ['not there', 'nowhere', 'nowhere'],
  ])('in a file that is %s is refused, whatever the variable holds', async (_what, file, message) => {
    const skep = await commandUnderTest({ ...secretly(), files: { empty: ' \n' } });
    const env = { SKEP_REMOTE_AUTH_BEARER_TOKEN: TOKEN };
    expect(await skep.refusal(`${RUN} ${AUTH}-bearer-token-file ${file}`, { env })).toContain(message);
    expect(await skep.left()).toEqual(NOTHING_LEFT);
  });

  test('of a variable is shown to no server of a catalogue unasked, and the person hears who sees it', async () => {
    const skep = await commandUnderTest({ ...secretly(), catalogue });
    const env = { SKEP_REMOTE_AUTH_BEARER_TOKEN: TOKEN };
    const asks = 'send x.invalid the token of SKEP_REMOTE_AUTH_BEARER_TOKEN';
    expect(await skep.refusal('run plain', { env })).toContain(asks);
    expect((await skep.run('run plain --name b1', { env, agrees: true })).err).toContain('x.invalid is shown the token of SKEP_REMOTE_AUTH_BEARER_TOKEN\n');
    expect((await skep.run(RUN, { env })).err).toContain('127.0.0.1:9 is shown the token');
    await skep.write('../catalogue.json', catalogueOf({ 'com.example/plain': { remotes: [{ type: 'streamable-http', url: 'https://x.invalid/other' }] } }));
    expect((await skep.run('upgrade b1 --yes')).err).toContain('send https://x.invalid/other the bearer token');
  }); // prettier-ignore

  test('is sealed, or refused, also where a file has it, or it is too large', async () => {
    const skep = await commandUnderTest({
      files: { 'in.json': { schema_version: 'v0.1.0', name: 'a1', remote_url: URL, transport: 'streamable-http', remote_auth_config: { bearer_token: TOKEN } } },
    });
    expect(await skep.refusal('run --from-config in.json --trust-config')).toContain('secrets provider not configured');
    const sealing = await commandUnderTest(secretly());
    expect(await sealing.refusal(`${RUN} ${AUTH}-bearer-token ${'x'.repeat(1_048_577)}`)).toContain('cannot be sealed: it is too large');
  }); // prettier-ignore

  test('in a file stays there, and an import asks before it is sent', async () => {
    const skep = await commandUnderTest();
    await skep.write('token', `${TOKEN}\n`);
    await skep.output(`${RUN} ${AUTH}-bearer-token-file token`);
    expect(await everywhere(skep)).not.toContain(TOKEN);
    const saved = JSON.parse(await readFile(join(skep.places.runConfigsDir, 'a1.json'), 'utf8'));
    expect(saved.remote_auth_config).toEqual({ bearer_token_file: join(skep.cwd, 'token') });
    await skep.output('rm a1');
    expect(await skep.refusal('run --from-config out.json')).toContain(
      'send 127.0.0.1:9 the content of "WORK/token"',
    );
    await skep.output('run --from-config out.json --trust-config');
  });

  test('of a secret is taken by its name', async () => {
    const skep = await commandUnderTest(secretly());
    await skep.output('secret set mine', { input: TOKEN });
    await skep.output(`${RUN} --secret mine,target=SKEP_REMOTE_AUTH_BEARER_TOKEN`);
    expect(await everywhere(skep)).not.toContain(TOKEN);
    expect(await skep.output('auth status a1')).toContain('bearer token');
  });

  test('that was kept for good gives way to what is asked of one run', async () => {
    const skep = await commandUnderTest(secretly());
    const { url } = await server(() => ({ status: 401 }));
    const env = { SKEP_REMOTE_AUTH_BEARER_TOKEN: TOKEN };
    const said = await skep.refusal(`run ${url} --name a1 ${AUTH}`, { env });
    expect(said).toContain('--remote-auth-bearer-token-file');
  });
});

describe('what another tool exported of signing in', () => {
  const exported = (auth: object): object => ({
    schema_version: 'v0.1.0',
    name: 'a1',
    remote_url: URL,
    transport: 'streamable-http',
    remote_auth_config: auth,
  });
  const FULL = {
    client_id: 'c',
    client_secret: 'OAUTH_CLIENT_SECRET_a1,target=oauth_secret',
    scopes: null,
    skip_browser: false,
    timeout: 45_000_000_000,
    callback_port: 8_667,
    use_pkce: true,
    issuer: 'https://i.invalid',
    authorize_url: 'https://i.invalid/a',
    token_url: 'https://i.invalid/t',
    oauth_params: { audience: 'x' },
    scope_param_name: 'user_scope',
    cached_client_id: 'old',
    cached_refresh_token_ref: 'OAUTH_REFRESH_TOKEN_a1',
  };

  test('is told before it is used, and its own state is left out', async () => {
    const skep = await commandUnderTest({ ...secretly(), files: { 'in.json': exported(FULL) } });
    const said = await skep.refusal('run --from-config in.json');
    expect(said).toContain('have you sign in at "https://i.invalid"');
    expect(said).toContain('show its identity provider the secret "OAUTH_CLIENT_SECRET_a1"');
    expect(said).not.toContain('https://i.invalid/a');
    const missing = await skep.refusal('run --from-config in.json --trust-config');
    expect(missing).toContain('secret not found: "OAUTH_CLIENT_SECRET_a1"');
  });

  test('is told where the file leaves it to the server whom to ask', async () => {
    const auth = { client_id: 'well-known', scopes: ['files'], resource: 'https://files.invalid', oauth_params: { audience: 'x' } };
    const skep = await commandUnderTest({
      files: { 'in.json': exported(auth), 'bare.json': { ...exported({}), remote_auth_config: undefined } },
    });
    const where = 'have you sign in where 127.0.0.1:9 says, if it wants that';
    expect(await skep.refusal('run --from-config bare.json')).toContain(where);
    const said = await skep.refusal('run --from-config in.json');
    for (const grant of [where, 'as the client "well-known"', 'the scopes "files"', 'with "audience=x"', 'send 127.0.0.1:9 a token for "https://files.invalid"'])
      expect(said).toContain(grant);
  }); // prettier-ignore

  test('is that of a service where the file says so, whatever else the server is sent', async () => {
    const service = exported({ client_id: 'c', client_credentials: true });
    const headers = { header_forward: { add_plaintext_headers: { 'X-A': '1' } } };
    const skep = await commandUnderTest({ files: { 'in.json': { ...service, ...headers } } });
    const said = await skep.refusal('run --from-config in.json');
    expect(said).toContain('have its client sign in where 127.0.0.1:9 says');
    expect(said).toContain('as the client "c"');
  });

  test.each([
    ['an address that could be overheard', { issuer: 'http://i.invalid' }, 'could be overheard'],
    ['no client for its endpoints', { authorize_url: 'https://i.invalid/a', token_url: 'https://i.invalid/t' }, '--remote-auth-client-id'],
    ['a member of the wrong kind', { issuer: 7 }, '"remote_auth_config.issuer"'],
    ['a member that nobody knows', { issuer2: 'x' }, 'issuer2'],
  ])('is refused with %s', async (_name, auth, message) => {
    const skep = await commandUnderTest({ ...secretly(), files: { 'in.json': exported(auth) } });
    expect(await skep.refusal('run --from-config in.json --trust-config')).toContain(message);
  }); // prettier-ignore

  test('is a bearer token where it says so', async () => {
    const skep = await commandUnderTest({
      ...secretly(),
      files: {
        'in.json': exported({ bearer_token: 'mine,target=bearer_token', headers: [], env_vars: null }),
      },
    });
    await skep.output('secret set mine', { input: TOKEN });
    await skep.output('run --from-config in.json --trust-config');
    expect(await skep.output('auth status a1')).toContain('bearer token');
  });

  test('is for a server elsewhere alone', async () => {
    const skep = await commandUnderTest({
      files: { 'in.json': { ...exported({ issuer: 'https://i.invalid' }), remote_url: '', image: 'fake:1', transport: 'stdio' } },
    });
    expect(await skep.refusal('run --from-config in.json --trust-config')).toContain('"remote_auth_config": is for a server elsewhere');
  }); // prettier-ignore
});
