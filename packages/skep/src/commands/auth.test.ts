import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { startWorld, tokens, type World } from '@skep/auth/sign-in/world.fixture.ts';
import { describe, expect, onTestFinished, test } from 'vitest';
import { commandUnderTest, NOTHING_LEFT, type CommandUnderTest } from '../command-under-test.fixture.ts';
import { deleteRunConfig, saveRunConfig } from '../run-config/file.ts';
import { decodeRunConfig } from '../run-config/run-config.ts';
import { MemoryKeyring } from '../secrets/keyring/keyring.fixture.ts';
import { signInOfWorkload, signInStore } from '../secrets/sign-in-store.ts';

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
    expect((await saved(own)).remote_auth_config.issuer).toBe(world.server.origin);
    world.resource.on.set('GET /.well-known/oauth-protected-resource/mcp', () => ({
      body: { resource: world.target.resource, authorization_servers: [other.server.origin] },
    }));
    await skep.output(LOGIN);
    expect(other.server.asked).toEqual([]);
    expect(world.server.of('POST /token')).toHaveLength(2);
  });

  test('keeps nothing for a workload that was removed meanwhile, and withdraws what it got', async () => {
    const { skep, world, store } = await machine();
    world.server.on.set('POST /token', async () => {
      await deleteRunConfig(skep.places, 'a1');
      return { body: tokens('refresh') };
    });
    const { status, err } = await skep.run(`${LOGIN} --scopes a`);
    expect({ status, err }).toEqual({ status: 1, err: expect.stringContaining('a1') });
    expect(await skep.left()).toEqual(NOTHING_LEFT);
    expect(await store.read(signInOfWorkload('a1'))).toBeUndefined();
    expect(world.server.of('POST /revoke')).not.toEqual([]);
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

  test('goes with the workload, whatever its configuration says of it', async () => {
    const { skep, store } = await machine();
    await skep.output(LOGIN);
    const now = JSON.parse(await readFile(join(skep.places.runConfigsDir, 'a1.json'), 'utf8'));
    await saveRunConfig(skep.places, decodeRunConfig({ ...now, remote_auth_config: undefined }, 'test'));
    await skep.output('rm a1');
    expect(await store.read(signInOfWorkload('a1'))).toBeUndefined();
  });
});

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

test('where there is neither a browser nor a code, the address is printed', async () => {
  const { skep, world } = await machine();
  world.metadata['device_authorization_endpoint'] = undefined;
  const said = await skep.refusal(`run ${world.target.resource} --name b1 --remote-auth-timeout 1s`);
  expect(said).toContain(`To sign in, open this address:\n  ${world.server.origin}/authorize?`);
  expect(said).toContain('--remote-auth-timeout gives more time');
});
