import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { commandUnderTest, NOTHING_LEFT } from '../command-under-test.fixture.ts';
import { MemoryKeyring } from '../secrets/keyring/keyring.fixture.ts';

const IDP = 'https://idp.example';
const RUN = `run fake:1 --name a1 --transport streamable-http --target-port 8080 --oidc-issuer ${IDP} --oidc-audience x`;
const GOOD = `${RUN} --token-exchange-url ${IDP}/token`;
const VALUE = 'hush-hush-value';
const IMPORTED = {
  name: 'a1',
  image: 'fake:1',
  transport: 'streamable-http',
  target_port: 8080,
  oidc_config: { issuer: IDP, audience: 'x' },
};
const FILES = {
  secret: `${VALUE}\n`,
  empty: ' \n',
  'step.json': {
    ...IMPORTED,
    middleware_configs: [
      {
        type: 'tokenexchange',
        parameters: {
          token_exchange_config: {
            token_url: `${IDP}/token`,
            client_id: 'c',
            client_secret: VALUE,
            subject_token_type: 'urn:ietf:params:oauth:token-type:id_token',
            header_strategy: 'custom',
            external_token_header_name: 'X-Up',
          },
        },
      },
    ],
  },
  'custom.json': {
    ...IMPORTED,
    token_exchange_config: { token_url: `${IDP}/token`, header_strategy: 'custom' },
  },
  'nowhere.json': { ...IMPORTED, token_exchange_config: {} },
};

describe('the exchange of tokens', () => {
  test.each([
    [`${RUN} --token-exchange-url=`, '--token-exchange-url is empty'],
    [`${RUN} --token-exchange-url idp.example`, 'must be an absolute https URL'],
    [`${RUN} --token-exchange-url http://idp.example/token`, 'must be an absolute https URL'],
    [`${RUN} --token-exchange-url https://10.0.0.1/token`, '10.0.0.1'],
    [`${GOOD} --token-exchange-header-name Host`, '"Host" is no header that can carry a token'],
    [`${GOOD} --token-exchange-subject-token-type saml2`, '--token-exchange-subject-token-type'],
    [`${GOOD} --token-exchange-client-secret a --token-exchange-client-secret-file secret`, 'client-secret'],
    [`${GOOD} --token-exchange-client-secret-file nowhere`, 'client secret "WORK/nowhere" does not exist'],
    [`${GOOD} --token-exchange-client-secret-file empty`, 'client secret "WORK/empty" is empty'],
    ['run --from-config custom.json', 'the header of the new token is missing'],
    ['run --from-config nowhere.json', 'the token endpoint is missing'],
  ])('is refused as %s, and nothing is made', async (line, message) => {
    const skep = await commandUnderTest({ files: FILES });
    expect(await skep.refusal(line)).toContain(message);
    expect(await skep.left()).toEqual(NOTHING_LEFT);
  });

  test('is warned of where it does nothing', async () => {
    const skep = await commandUnderTest();
    const plain = 'run fake:1 --name a1 --transport streamable-http --target-port 8080';
    expect((await skep.run(`${plain} --token-exchange-url ${IDP}/token`)).err).toContain(
      'Warning: --token-exchange-url has no effect without --oidc-issuer',
    );
    expect((await skep.run(`${plain.replace('a1', 'a2')} --token-exchange-audience x`)).err).toContain(
      'Warning: --token-exchange-audience has no effect without --token-exchange-url\n',
    );
  });

  test.each([
    ['a flag', `--token-exchange-client-secret ${VALUE}`, {}],
    ['a file', '--token-exchange-client-secret-file secret', {}],
    ['a variable', '', { SKEP_TOKEN_EXCHANGE_CLIENT_SECRET: VALUE }],
  ])('is saved, with the secret of %s where secrets are, away from server and files', async (_how, flags, env) => {
    const skep = await commandUnderTest({
      files: FILES,
      keyrings: [new MemoryKeyring({ maxChars: 1_000_000 })],
      env: { SKEP_SECRETS_PROVIDER: 'keyring', ...env },
    });
    const more = '--token-exchange-client-id c --token-exchange-audience svc --token-exchange-scopes a,b';
    const { status, err } = await skep.run(`${GOOD} ${more} --token-exchange-header-name X-Up ${flags}`);
    expect(status, err).toBe(0);
    expect(err).not.toContain(VALUE);
    const saved = await readFile(join(skep.places.runConfigsDir, 'a1.json'), 'utf8');
    expect(saved).not.toContain(VALUE);
    expect(JSON.parse(saved)).toMatchObject({
      token_exchange_config: {
        token_url: `${IDP}/token`,
        client_id: 'c',
        audience: 'svc',
        scopes: ['a', 'b'],
        external_token_header_name: 'X-Up',
      },
      secrets: [expect.stringMatching(/,target=SKEP_TOKEN_EXCHANGE_CLIENT_SECRET$/)],
    });
    expect(JSON.stringify(skep.runtime.specOf('a1'))).not.toContain(VALUE);
    expect(Object.keys(skep.runtime.specOf('a1')?.env ?? {})).not.toContain('SKEP_TOKEN_EXCHANGE_CLIENT_SECRET');
    await skep.output('export a1 out.json');
    const exported = await readFile(join(skep.cwd, 'out.json'), 'utf8');
    expect(exported).not.toContain(VALUE);
    expect(JSON.parse(exported)).toMatchObject({ token_exchange_config: { token_url: `${IDP}/token` } });
  }); // prettier-ignore

  test('of an imported file is the person’s to grant, and its secret goes where secrets are', async () => {
    const skep = await commandUnderTest({
      files: FILES,
      keyrings: [new MemoryKeyring({ maxChars: 1_000_000 })],
      env: { SKEP_SECRETS_PROVIDER: 'keyring' },
    });
    expect(await skep.refusal('run --from-config step.json')).toContain(
      `send the tokens of its clients to "${IDP}/token"`,
    );
    const { status, err } = await skep.run('run --from-config step.json --trust-config');
    expect(status, err).toBe(0);
    const saved = await readFile(join(skep.places.runConfigsDir, 'a1.json'), 'utf8');
    expect(saved).not.toContain(VALUE);
    expect(JSON.parse(saved)).toMatchObject({
      token_exchange_config: { header_strategy: 'custom', external_token_header_name: 'X-Up' },
    });
  });
});
