import type { KeptSignIn } from '@skep/auth/sign-in/port.ts';
import { systemClock } from '@skep/core/time/clock.ts';
import { expect, test } from 'vitest';
import { commandUnderTest, type CommandUnderTest } from '../command-under-test.fixture.ts';
import { MemoryKeyring } from '../secrets/keyring/keyring.fixture.ts';
import { signInStore } from '../secrets/sign-in-store.ts';
import { loginWorld } from './login-world.fixture.ts';
import { registryServer } from './registry-server.fixture.ts';
import { signInOfRegistry, tokensFor } from './tokens.ts';

type World = Awaited<ReturnType<typeof loginWorld>>;

const machine = () => ({
  supervisor: 'none' as const,
  keyrings: [new MemoryKeyring({ maxChars: 1_000_000 })],
  env: { SKEP_SECRETS_PROVIDER: 'keyring' },
  // Nobody waits for a code to be typed.
  clock: { ...systemClock, sleep: async () => undefined },
});
const EXPIRED: KeptSignIn = {
  version: 1,
  way: 'device',
  resource: 'https://registry.test',
  issuer: 'https://idp.test',
  tokenEndpoint: 'https://idp.test/token',
  client: { id: 'skep', authMethod: 'none' },
  scopes: [],
  mayBePrivate: false,
  accessToken: 'old',
  obtainedAt: 0,
  expiresAt: 1,
  refreshToken: 'r',
};
/** As a service, which waits for nobody. */
const lineFor = ({ registry, idp }: World, more = ''): string =>
  `login --client-id job --client-secret-file secret --allow-private-ip --issuer ${idp} ${registry} ${more}`;
async function signIn(skep: CommandUnderTest, world: World, more = ''): ReturnType<CommandUnderTest['run']> {
  await skep.write('secret', 'a-secret');
  return skep.run(lineFor(world, more));
}
const withdrawn = ({ ofIdp }: World): number => ofIdp.filter(({ line }) => line === 'POST /revoke').length;
const hostOf = ({ registry }: World): string => new URL(registry).host;

test('who is signed in to several servers is told, and leaves the one that is named', async () => {
  const skep = await commandUnderTest(machine());
  const [one, other] = [await loginWorld(), await loginWorld()];
  await signIn(skep, one);
  await signIn(skep, other);
  const first = await skep.run('logout');
  expect([first.out, first.err]).toEqual([
    `Signed out of ${hostOf(other)}\n`,
    `You are still signed in to ${one.registry}: skep logout ADDRESS\n`,
  ]);
  expect([withdrawn(one), withdrawn(other)]).toEqual([0, 1]);
  await skep.output('config unset-registry');
  expect(await skep.refusal('whoami')).toContain(
    `you are signed in as nobody; you are signed in to ${one.registry}: use it with skep config set-registry ${one.registry}`,
  );
  await signIn(skep, other);
  await skep.output('config unset-registry');
  expect(await skep.refusal('logout')).toMatch(
    /of which\? you are signed in to .*, .*; name one: skep logout http/,
  );
  expect(await skep.output(`logout ${one.registry}/registry/acme`)).toBe(`Signed out of ${hostOf(one)}\n`);
  // The only one that is left need not be named.
  expect(await skep.output('logout')).toBe(`Signed out of ${hostOf(other)}\n`);
  expect(await skep.refusal('logout')).toContain('you are signed in nowhere');
});

test('is known to whoami before a registry was chosen, and though there is none of that name', async () => {
  const [skep, world] = [await commandUnderTest(machine()), await loginWorld()];
  world.registries = ['acme', 'data'];
  expect((await signIn(skep, world)).err).toContain(
    `choose one with skep config set-registry ${world.registry}`,
  );
  expect(await skep.output('whoami')).toMatch(/Signed in as: ann\n(?:.*\n)*Registries: +acme, data\n/);
  expect(await skep.output('config get-registry')).toBe('built-in catalogue\n');
  const other = await commandUnderTest(machine());
  expect((await signIn(other, world, 'none')).err).toContain(
    'has no registry "none" for you; there are: acme, data',
  );
  expect(await other.output('logout')).toBe(`Signed out of ${hostOf(world)}\n`);
});

test('a registry in use stays as it is while none is chosen elsewhere', async () => {
  const [skep, world, other] = [await commandUnderTest(machine()), await loginWorld(), await loginWorld()];
  await signIn(skep, world);
  const before = await skep.read(skep.places.configFile);
  other.registries = ['acme', 'data'];
  await signIn(skep, other);
  expect(await skep.read(skep.places.configFile)).toBe(before);
});

test('what was kept stays until another sign-in holds', async () => {
  const [skep, world] = [await commandUnderTest(machine()), await loginWorld()];
  await signIn(skep, world);
  const ending = new AbortController();
  const idp = await registryServer(() => {
    ending.abort(new Error('Ctrl-C'));
    return new Promise(() => undefined);
  });
  world.metadata = { device_authorization_endpoint: `${idp.address}/device` };
  const device = `login --device --allow-private-ip --issuer ${world.idp} ${world.registry}`;
  expect((await skep.run(device, { signal: ending.signal })).status).not.toBe(0);
  expect(idp.seen).toHaveLength(1);
  world.accepts = false;
  expect((await signIn(skep, world)).status).toBe(1);
  world.accepts = true;
  expect(await skep.output('whoami')).toContain('ann');
});

test('who signs in again without an address stays at the registry in use, and is not asked which', async () => {
  const [skep, world] = [await commandUnderTest(machine()), await loginWorld()];
  world.registries = ['acme', 'data'];
  await signIn(skep, world, 'data');
  const again = 'login --client-id job --client-secret-file secret';
  const { out } = await skep.run(again, { answers: { Registry: 'acme' } });
  expect(out).toContain('looked up in data; also there: acme');
  world.registries = ['acme', 'third'];
  expect((await skep.run(again, { answers: { Registry: 'third' } })).out).toContain('looked up in third');
  // One that lists none is used as it was.
  await skep.run(`config set-registry ${world.registry}/registry/acme --allow-private-ip`);
  world.registries = undefined;
  await skep.output(again);
  expect(await skep.output('config get-registry')).toContain(`${world.registry}/registry/acme `);
});

/** As a person, with a client that Skep registers. */
async function signInRegistered(skep: CommandUnderTest, { registry, idp }: World): Promise<string> {
  return (await skep.run(`login --device --allow-private-ip --issuer ${idp} ${registry}`)).err;
}
async function registering(): Promise<World> {
  const world = await loginWorld();
  world.offer = { client_id: undefined };
  world.metadata = { registration_endpoint: `${world.idp}/register` };
  return world;
}

test('tokens that the registry refuses are withdrawn, unless the good ones may be of the same grant', async () => {
  const [skep, world, given] = [await commandUnderTest(machine()), await registering(), await loginWorld()];
  world.accepts = given.accepts = false;
  expect(await signInRegistered(skep, world)).toContain('does not accept what');
  expect(withdrawn(world)).toBe(1);
  world.accepts = true;
  await signInRegistered(skep, world);
  world.accepts = false;
  expect(await signInRegistered(skep, world)).toContain('does not accept what');
  expect(withdrawn(world)).toBe(1);
  // A client of others may have signed in anywhere.
  expect(await signInRegistered(skep, given)).toContain('does not accept what');
  expect(withdrawn(given)).toBe(0);
});

test('who gives the address of a document as client is told where it is not taken', async () => {
  const [skep, world] = [await commandUnderTest(machine()), await registering()];
  const document = 'https://skep.test/client.json';
  world.offer = { client_id: document };
  expect(await signInRegistered(skep, world)).toContain(`Note: ${world.idp} does not take ${document}`);
});

test('who signs in again at another provider has the former tokens withdrawn', async () => {
  const [skep, world, other] = [await commandUnderTest(machine()), await registering(), await registering()];
  await signInRegistered(skep, world);
  await signInRegistered(skep, world);
  expect(withdrawn(world)).toBe(0);
  await signInRegistered(skep, { ...world, idp: other.idp });
  expect([withdrawn(world), withdrawn(other)]).toEqual([1, 0]);
});

test('a second logout leaves no other registry', async () => {
  const [skep, one, other] = [await commandUnderTest(machine()), await loginWorld(), await loginWorld()];
  await signIn(skep, one);
  await signIn(skep, other);
  await skep.output('logout');
  const again = await skep.run('logout');
  expect([again.out, again.err]).toEqual([
    `Nobody was signed in to ${hostOf(other)}\n`,
    `You are still signed in to ${one.registry}: skep logout ADDRESS\n`,
  ]);
  expect(withdrawn(one)).toBe(0);
});

test('a registry that was chosen while somebody signed in elsewhere stays the one in use', async () => {
  const [skep, world] = [await commandUnderTest(machine()), await loginWorld()];
  world.registries = ['acme', 'data'];
  const idp = await registryServer(async () => {
    await skep.configure('registry_api_url: https://chosen.test/registry/one\n');
    return [200, { access_token: 'a-token', token_type: 'bearer', expires_in: 3_600 }];
  });
  world.metadata = { token_endpoint: `${idp.address}/token` };
  await signIn(skep, world);
  expect(await skep.read(skep.places.configFile)).toBe(
    'registry_api_url: https://chosen.test/registry/one\n',
  );
});

test('is told where the token of SKEP_TOKEN_FILE is shown instead', async () => {
  const [skep, world] = [await commandUnderTest(machine()), await loginWorld()];
  const env = { SKEP_TOKEN_FILE: await skep.write('token', 'abc.def\n') };
  await skep.write('secret', 'a-secret');
  const note = 'Note: SKEP_TOKEN_FILE is set, and its token is ';
  expect((await skep.run(lineFor(world), { env })).err).toContain(
    `${note}shown there instead of this sign-in\n`,
  );
  expect((await skep.run('logout', { env })).err).toBe(`${note}still shown to ${hostOf(world)}\n`);
  expect((await signIn(skep, world)).err).not.toContain('SKEP_TOKEN_FILE');
});

test('nobody waits for a token longer than is told, nor at all for a Tab', async () => {
  const { keyrings, env } = machine();
  const skep = await commandUnderTest({ supervisor: 'none', keyrings, env });
  const { address, seen } = await registryServer(() => [200, { servers: [], metadata: {} }]);
  await skep.configure(
    `registry_api_url: ${address}\nallow_private_registry_ip: true\nregistry_auth:\n  type: oauth\n  oauth:\n    server: ${address}\n`,
  );
  const key = signInOfRegistry(address);
  const signal = new AbortController().signal;
  const program = { version: '1.0.0' };
  const around = {
    places: skep.places,
    env,
    keyrings,
    platform: 'linux',
    uid: 1000,
    signal,
    program,
  } as const;
  // Whoever changes a sign-in has the others wait.
  await signInStore(around).change(key, async () => EXPIRED);
  await signInStore(around).change(key, async (kept) => {
    const tokens = await tokensFor(address, { registryAuthServer: address }, { ...around, patienceMs: 1 });
    await expect(tokens?.token()).rejects.toMatchObject({
      code: 'auth/unavailable',
      message: `another process is working on the sign-in of ${key}`,
    });
    tokens?.close();
    expect((await skep.run('complete -- run x')).out).toBe('');
    return kept;
  });
  expect(seen).toEqual([]);
});

test('a Tab ends though the registry never answers', async () => {
  const skep = await commandUnderTest(machine());
  const { address, seen } = await registryServer(() => new Promise(() => undefined));
  await skep.configure(`registry_api_url: ${address}\nallow_private_registry_ip: true\n`);
  expect(await skep.run('complete -- run x')).toEqual({ status: 0, out: '', err: '' });
  expect(seen).toHaveLength(1);
});
