import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { startWorld, tokens, type World } from '@skep/auth/sign-in/world.fixture.ts';
import { describe, expect, onTestFinished, test } from 'vitest';
import { commandUnderTest, NOTHING_LEFT, type CommandUnderTest } from '../command-under-test.fixture.ts';
import { deleteRunConfig, saveRunConfig } from '../run-config/file.ts';
import { decodeRunConfig } from '../run-config/run-config.ts';
import { MemoryKeyring } from '../secrets/keyring/keyring.fixture.ts';
import { signInOfWorkload, signInStore } from '../secrets/sign-in-store.ts';
import { writeStatus } from '../supervisor/state.ts';

const LOGIN = 'auth login --client-credentials a1';

interface Machine {
  readonly skep: CommandUnderTest;
  readonly world: World;
  readonly store: ReturnType<typeof signInStore>;
}

/** A workload whose server wants a sign-in, which nobody has done; its client has a secret. */
async function machine(): Promise<Machine> {
  const world = await startWorld();
  onTestFinished(() => world[Symbol.asyncDispose]());
  const keyrings = [new MemoryKeyring({ maxChars: 1_000_000 })];
  const env = { SKEP_SECRETS_PROVIDER: 'keyring' };
  const skep = await commandUnderTest({ keyrings, env });
  const { places } = skep;
  const store = signInStore({ env, places, platform: 'linux', uid: 1000, signal: new AbortController().signal, keyrings }); // prettier-ignore
  const made = { skep, world, store };
  await save(made, 'a1');
  return made;
}

async function save({ skep, world }: Pick<Machine, 'skep' | 'world'>, name: string): Promise<void> {
  const client_secret_file = await skep.write('secret', 'hunter2');
  const { resource } = world.target;
  const remote_auth_config = { client_id: 'c', client_secret_file };
  const remote = { image: resource, remote_url: resource, remote_allow_private_ip: true };
  const config = { name, ...remote, transport: 'streamable-http', remote_auth_config };
  await saveRunConfig(skep.places, decodeRunConfig(config, 'test'));
}

const saved = async ({ skep }: Machine, name = 'a1') =>
  JSON.parse(await readFile(join(skep.places.runConfigsDir, `${name}.json`), 'utf8'));

describe('signing in to a workload', () => {
  test('shows the secret of its client to the issuer that had it first, and to none that is named later', async () => {
    const own = await machine();
    const other = await startWorld();
    onTestFinished(() => other[Symbol.asyncDispose]());
    const { skep, world } = own;
    await skep.output(LOGIN);
    expect((await saved(own)).remote_auth_config).toMatchObject({
      issuer: world.server.origin,
      issuer_found: true,
    });
    world.resource.on.set('GET /.well-known/oauth-protected-resource/mcp', () => ({
      body: { resource: world.target.resource, authorization_servers: [other.server.origin] },
    }));
    await skep.output(LOGIN);
    expect(other.server.asked).toEqual([]);
    expect(world.server.of('POST /token')).toHaveLength(2);
  });

  test('keeps nothing for a workload that was removed meanwhile, and ends no other sign-in of its client', async () => {
    const { skep, world, store } = await machine();
    world.server.on.set('POST /token', async () => {
      await deleteRunConfig(skep.places, 'a1');
      return { body: tokens('refresh') };
    });
    const { status, err } = await skep.run(`${LOGIN} --scopes a`);
    expect({ status, err }).toEqual({ status: 1, err: expect.stringContaining('a1') });
    expect(await skep.left()).toEqual(NOTHING_LEFT);
    expect(await store.read(signInOfWorkload('a1'))).toBeUndefined();
    expect(world.server.of('POST /revoke')).toEqual([]);
  });

  test('that fails in the end takes nothing from the sign-in that stays', async () => {
    const { skep, world, store } = await machine();
    await skep.output(LOGIN);
    const before = await store.read(signInOfWorkload('a1'));
    world.server.on.set('POST /token', async () => {
      await deleteRunConfig(skep.places, 'a1');
      return { body: tokens('refresh') };
    });
    expect(await skep.run(LOGIN)).toMatchObject({ status: 1, err: expect.stringContaining('a1') });
    expect(await store.read(signInOfWorkload('a1'))).toEqual(before);
    expect(world.server.of('POST /revoke')).toEqual([]);
  });

  test('takes back nothing that another command has changed meanwhile', async () => {
    const own = await machine();
    const { skep, world } = own;
    world.server.on.set('POST /token', async () => {
      const now = await saved(own);
      await saveRunConfig(skep.places, decodeRunConfig({ ...now, env_vars: { A: 'b' } }, 'test'));
      return { body: tokens('refresh') };
    });
    await skep.output(`${LOGIN} --scopes a`);
    expect(await saved(own)).toMatchObject({ env_vars: { A: 'b' }, remote_auth_config: { scopes: ['a'] } });
  });

  test('withdraws what it replaces, unless that may be of the same grant', async () => {
    const own = await machine();
    const { skep, world, store } = own;
    await skep.output(LOGIN);
    await skep.output(LOGIN);
    expect(world.server.of('POST /revoke')).toEqual([]);
    const replaced = await store.change(
      signInOfWorkload('a1'),
      async (kept) => kept && { ...kept, client: { id: 'of-before', authMethod: 'none', registered: {} } },
    );
    await skep.output(LOGIN);
    const withdrawn = world.server.of('POST /revoke').map(({ form }) => form.get('token'));
    expect(withdrawn).toEqual([replaced?.refreshToken, replaced?.accessToken]);
  });

  test('goes with the workload, whatever its configuration says of it, and is withdrawn where nobody else has its client', async () => {
    const { skep, store, world } = await machine();
    await skep.output(LOGIN);
    const key = signInOfWorkload('a1');
    const registered = { id: 'of-it', authMethod: 'none', registered: {} } as const;
    const gone = await store.change(key, async (kept) => kept && { ...kept, client: registered });
    const now = JSON.parse(await readFile(join(skep.places.runConfigsDir, 'a1.json'), 'utf8'));
    await saveRunConfig(skep.places, decodeRunConfig({ ...now, remote_auth_config: undefined }, 'test'));
    await skep.output('rm a1');
    expect(await store.read(key)).toBeUndefined();
    const withdrawn = world.server.of('POST /revoke').map(({ form }) => form.get('token'));
    expect(withdrawn).toEqual([gone?.refreshToken, gone?.accessToken]);
  });
});

test('who gives the address of a document as client is told where it is not taken', async () => {
  const own = await machine();
  const { skep, world } = own;
  const code = { device_code: 'd', user_code: 'A', verification_uri: 'https://as.test/', expires_in: 60, interval: 1 };
  world.server.on.set('POST /device', () => ({ body: code }));
  const client_id = 'https://skep.test/client.json';
  const config = { ...(await saved(own)), remote_auth_config: { client_id } };
  await saveRunConfig(skep.places, decodeRunConfig(config, 'test'));
  const { status, err } = await skep.run('auth login --device a1');
  expect([status, err]).toEqual([
    0,
    expect.stringContaining(
      `Note: ${world.server.origin} does not take ${client_id} as a client, so Skep registered one there\n`,
    ),
  ]);
  const [asked] = world.server.of('POST /device');
  expect(asked?.form.get('client_id')).toMatch(/^client-/u);
}); // prettier-ignore

test('what cannot be read or shown of one sign-in hides no other', async () => {
  const own = await machine();
  const { skep, world, store } = own;
  await save(own, 'a2');
  await save(own, 'a3');
  await skep.output(LOGIN);
  await skep.output(LOGIN.replace('a1', 'a2'));
  const kept = await store.read(signInOfWorkload('a2'));
  if (kept === undefined) throw new Error('nothing is kept');
  const { issuer: _gone, ...damaged } = kept;
  await store.change(signInOfWorkload('a2'), async () => damaged as typeof kept);
  await store.change(signInOfWorkload('a3'), async () => ({ ...kept, expiresAt: 8.7e15 }));
  const shown = JSON.parse(await skep.output('auth status --format json'));
  expect(shown).toMatchObject([
    { name: 'a1', state: 'signed in', issuer: world.server.origin },
    { name: 'a2', state: 'unreadable', next: 'skep auth login a2' },
    { name: 'a3', state: 'signed in' },
  ]);
  expect(shown[2]).not.toHaveProperty('expires');
  await skep.output(LOGIN.replace('a1', 'a2'));
});

test('a token that is refused is told from a sign-in that has ended, and what the server wants more is told', async () => {
  const own = await machine();
  const { skep, store } = own;
  await skep.output(LOGIN);
  const shown = async () => JSON.parse(await skep.output('auth status a1 --format json'))[0];
  expect(await shown()).not.toHaveProperty('next');
  const now = '2026-01-01T00:00:00.000Z';
  const status = { status: 'unauthenticated', created_at: now, updated_at: now, process_id: 0, process_started: '' } as const; // prettier-ignore
  await writeStatus(skep.places, 'a1', status);
  expect(await shown()).toMatchObject({ state: 'token refused', next: 'skep auth login a1' });
  const change = (to: object) =>
    store.change(signInOfWorkload('a1'), async (kept) => kept && { ...kept, ...to });
  await change({ expiresAt: 1 });
  expect(await shown()).toMatchObject({ state: 'ended', next: 'skep auth login a1' });
  await writeStatus(skep.places, 'a1', { ...status, status: 'running' });
  await change({ wanted: ['b'] });
  expect(await shown()).toMatchObject({ state: 'signed in', wants: ['b'], next: 'skep auth login a1' });
  await skep.output(LOGIN);
  expect(await shown()).not.toHaveProperty('next');
});

test('a service is signed in by its run, and again without being told how', async () => {
  const own = await machine();
  const { skep, world, store } = own;
  const secret = await skep.write('secret', 'hunter2');
  const flags = `--remote-auth-client-credentials --remote-auth-client-id ci --remote-auth-client-secret-file ${secret}`;
  const url = world.target.resource;
  expect(await skep.refusal(`run ${url} --name b1 --remote-auth-client-credentials`)).toContain(
    'a service signs in with a client of its own',
  );
  await skep.output(`run ${url} --name b1 ${flags}`);
  expect(await store.read(signInOfWorkload('b1'))).toMatchObject({ way: 'client-credentials', client: { id: 'ci' } }); // prettier-ignore
  expect((await saved(own, 'b1')).remote_auth_config).toMatchObject({ client_id: 'ci', client_credentials: true }); // prettier-ignore
  await skep.output('auth login b1');
  expect(world.server.of('POST /token').map(({ form }) => form.get('grant_type'))).toEqual(
    Array.from({ length: 2 }, () => 'client_credentials'),
  );
});

test.each([
  ['--remote-auth-resource https://files.invalid/api', 'https://files.invalid/api'],
  ['', undefined],
])('run with "%s" asks for a token for that resource, and for the next one too', async (flag, resource) => {
  const { skep, world } = await machine();
  const secret = await skep.write('secret', 'hunter2');
  const url = world.target.resource;
  const service = `--remote-auth-client-credentials --remote-auth-client-id ci --remote-auth-client-secret-file ${secret}`;
  await skep.output(`run ${url} --name b1 ${service} ${flag}`);
  await skep.output('auth login b1');
  const asked = world.server.of('POST /token').map(({ form }) => form.get('resource'));
  expect(asked).toEqual([resource ?? url, resource ?? url]);
});

test('a client that the server refuses is told with the flags that give another', async () => {
  const { skep, world } = await machine();
  world.server.on.set('POST /token', () => ({ status: 401, body: { error: 'invalid_client' } }));
  const said = await skep.refusal(LOGIN);
  expect(said).toContain('check --remote-auth-client-id and --remote-auth-client-secret-file');
});

test('where there is neither a browser nor a code, the address is printed', async () => {
  const { skep, world } = await machine();
  world.metadata['device_authorization_endpoint'] = undefined;
  const said = await skep.refusal(`run ${world.target.resource} --name b1 --remote-auth-timeout 1s`);
  expect(said).toContain(`To sign in, open this address:\n  ${world.server.origin}/authorize?`);
  expect(said).toContain('--remote-auth-timeout gives more time');
});
