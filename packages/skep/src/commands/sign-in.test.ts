import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { rootCertificates } from 'node:tls';
import { describe, expect, test } from 'vitest';
import { commandUnderTest, NOTHING_LEFT, type CommandLine } from '../command-under-test.fixture.ts';
import { MemoryKeyring } from '../secrets/keyring/keyring.fixture.ts';

const IDP = 'https://idp.example';
const RUN = 'run fake:1 --name a1 --transport stdio';
const GOOD = `${RUN} --oidc-issuer ${IDP} --oidc-audience mcp`;
const VALUE = 'hunter2-the-client-secret';
const FILES = {
  'a.json': {
    name: 'a1',
    image: 'fake:1',
    transport: 'stdio',
    oidc_config: { issuer: IDP, audience: 'mcp', client_id: 'c', client_secret: VALUE },
  },
  'empty.json': { name: 'a1', image: 'fake:1', transport: 'stdio', oidc_config: {} },
  'token.json': {
    name: 'a1',
    image: 'fake:1',
    transport: 'stdio',
    oidc_config: { issuer: IDP, audience: 'mcp', auth_token_file: 'token', jwks_allow_private_ip: true },
  },
  token: 'abc',
  'no.pem': 'nothing',
};

describe('a run whose clients are to sign in', () => {
  test.each<[string, CommandLine, string]>([
    ['nobody to ask', `${RUN} --oidc-audience mcp`, 'issuer, JWKS URL or introspection URL required to check the tokens of clients; give --oidc-issuer, --oidc-jwks-url or --oidc-introspection-url'],
    ['nobody to ask but a secret', `${RUN} --oidc-client-secret x`, 'issuer, JWKS URL or introspection URL required'],
    ['plain HTTP', `${RUN} --oidc-issuer http://idp.example`, 'address "http://idp.example/" of an identity provider must be an absolute https URL without credentials; for local use --oidc-insecure-allow-http allows it'],
    ['plain HTTP on loopback', `${RUN} --oidc-issuer http://127.0.0.1:1`, 'for local use --oidc-insecure-allow-http allows it'],
    ['a private address', `${RUN} --oidc-issuer https://10.0.0.1`, 'add --jwks-allow-private-ip if the identity provider is there'],
    ['keys at a private address', `${RUN} --oidc-issuer ${IDP} --oidc-jwks-url https://169.254.169.254/k`, 'add --jwks-allow-private-ip'],
    ['no URL', `${RUN} --oidc-issuer idp`, 'address "idp" of an identity provider'],
    ['no resource', `${GOOD} --resource-url mcp`, 'resource URL "mcp" is not an absolute http or https URL'],
    ['no token file', `${GOOD} --jwks-auth-token-file nowhere`, 'nowhere'],
    ['no certificates', `${GOOD} --skep-ca-bundle no.pem`, 'holds no certificate'],
    ['an empty issuer', `${RUN} --oidc-issuer= --oidc-audience=`, '--oidc-issuer is empty'],
    ['an empty audience', `${RUN} --oidc-issuer ${IDP} --oidc-audience=`, '--oidc-audience is empty'],
    ['an empty oidc_config in a file', 'run --from-config empty.json', 'issuer, JWKS URL or introspection URL required'],
  ])('is refused with %s, and nothing is made', async (_name, line, message) => {
    const skep = await commandUnderTest({ files: FILES });
    expect(await skep.refusal(line)).toContain(message);
    expect(await skep.left()).toEqual(NOTHING_LEFT);
  }); // prettier-ignore

  test('trusts the authority of the configuration file, where no flag names another', async () => {
    const [ca] = rootCertificates;
    const skep = await commandUnderTest({ files: { ...FILES, 'ca.pem': ca ?? '', 'flag.pem': ca ?? '' } });
    await skep.output('config set ca_certificate_path ca.pem');
    const bundleOf = async (name: string): Promise<unknown> =>
      JSON.parse(await readFile(join(skep.places.runConfigsDir, `${name}.json`), 'utf8')).skep_ca_bundle;
    await skep.run(GOOD);
    expect(await bundleOf('a1')).toBe(join(skep.cwd, 'ca.pem'));
    await skep.run(`${GOOD.replace('a1', 'a2')} --skep-ca-bundle flag.pem`);
    expect(await bundleOf('a2')).toBe(join(skep.cwd, 'flag.pem'));
    const { err } = await skep.run(RUN.replace('a1', 'a3'));
    expect(err).not.toContain('no effect');
    expect(await bundleOf('a3')).toBeUndefined();
  });

  test('is warned of where any token would do, and of flags that do nothing', async () => {
    const skep = await commandUnderTest();
    expect((await skep.run(`${RUN} --oidc-issuer ${IDP}`)).err).toContain(
      'Warning: without --oidc-audience or --resource-url a token for any other server is good for this one\n',
    );
    expect((await skep.run('run fake:1 --name a2 --transport stdio --oidc-scopes a')).err).toContain(
      'Warning: --oidc-scopes has no effect without --oidc-issuer: nobody has to sign in\n',
    );
  });

  test.each([
    ['a flag', `${GOOD} --oidc-client-id c --oidc-client-secret ${VALUE}`, {}],
    ['a variable', `${GOOD} --oidc-client-id c`, { SKEP_OIDC_CLIENT_SECRET: VALUE }],
    ['-e', `${GOOD} --oidc-client-id c -e SKEP_OIDC_CLIENT_SECRET=${VALUE}`, {}],
    ['an imported file', 'run --from-config a.json', {}],
  ])(
    'keeps a client secret of %s where secrets are, away from its server and every file',
    async (_how, line, env) => {
      const skep = await commandUnderTest({
        files: FILES,
        keyrings: [new MemoryKeyring({ maxChars: 1_000_000 })],
        env: { SKEP_SECRETS_PROVIDER: 'keyring', ...env },
      });
      const { err } = await skep.run(line);
      expect(err).not.toContain(VALUE);
      const saved = await readFile(join(skep.places.runConfigsDir, 'a1.json'), 'utf8');
      expect(JSON.parse(saved)).toMatchObject({
        oidc_config: { issuer: IDP, client_id: 'c' },
        secrets: [expect.stringMatching(/,target=SKEP_OIDC_CLIENT_SECRET$/)],
      });
      expect(saved).not.toContain(VALUE);
      const given = { ...skep.runtime.environments.get('a1'), ...skep.runtime.specOf('a1')?.env };
      expect(Object.keys(given)).not.toContain('SKEP_OIDC_CLIENT_SECRET');
      expect(JSON.stringify(skep.runtime.specOf('a1'))).not.toContain(VALUE);
      expect(await skep.output('status a1')).not.toMatch(/Secrets:.*SKEP_OIDC/);
      await skep.output('export a1 out.json');
      const exported = await readFile(join(skep.cwd, 'out.json'), 'utf8');
      expect(exported).not.toContain(VALUE);
      expect(JSON.parse(exported)).toMatchObject({ secret_env: ['SKEP_OIDC_CLIENT_SECRET'] });
    },
  );

  test('does not start again without the secret that it had', async () => {
    const keyring = new MemoryKeyring({ maxChars: 1_000_000 });
    const skep = await commandUnderTest({
      keyrings: [keyring],
      env: { SKEP_SECRETS_PROVIDER: 'keyring' },
    });
    await skep.output('secret set idp', { input: VALUE });
    await skep.output(`${GOOD} --oidc-client-id c --secret idp,target=SKEP_OIDC_CLIENT_SECRET`);
    await skep.output('stop a1');
    await skep.output('secret delete idp');
    expect(await skep.refusal('start a1')).toContain('secret not found: "idp"');
  });

  test('asks before a file has it send a file of this machine somewhere', async () => {
    const skep = await commandUnderTest({ files: FILES });
    const refusal = await skep.refusal('run --from-config token.json');
    expect(refusal).toContain('send its identity provider the content of "WORK/token"');
    expect(refusal).toContain('ask an identity provider at a private address');
    await skep.output('run --from-config token.json --trust-config');
  });
});
