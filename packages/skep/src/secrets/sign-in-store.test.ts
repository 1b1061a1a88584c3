import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { SOME_SIGN_IN } from '@skep/auth/sign-in/memory-store.fixture.ts';
import type { KeptSignIn } from '@skep/auth/sign-in/port.ts';
import { places as placesOf, type Places } from '@skep/core/files/places.ts';
import { expect, onTestFinished, test } from 'vitest';
import { MemoryKeyring } from './keyring/keyring.fixture.ts';
import type { SecretsSurroundings } from './provider.ts';
import { signInSecret } from './reference.ts';
import { signInOfWorkload, signInStore } from './sign-in-store.ts';
import { openProvider } from './open-provider.ts';

const KEY = signInOfWorkload('a1');
const KEPT: KeptSignIn = {
  ...SOME_SIGN_IN,
  accessToken: 'access-hunter2',
  refreshToken: 'refresh-hunter2',
};

async function machine(env: Record<string, string> = {}): Promise<SecretsSurroundings> {
  const home = await mkdtemp(join(tmpdir(), 'skep-sign-ins-'));
  onTestFinished(() => rm(home, { recursive: true }));
  const places = placesOf({ env: {}, home, platform: 'linux', temp: home });
  const keyrings = [new MemoryKeyring({ maxChars: 100_000 })];
  return { env, places, platform: 'linux', uid: 1000, signal: new AbortController().signal, keyrings };
}

test('what is kept of a sign-in is found again, and is in no file but the sealed one', async () => {
  const around = await machine();
  expect(await signInStore(around).read(KEY)).toBeUndefined();
  await signInStore(around).change(KEY, async () => KEPT);
  expect(await signInStore(around).read(KEY)).toEqual(KEPT);
  expect(await signInStore(around).read(signInOfWorkload('a2'))).toBeUndefined();
  const root = around.places.dataDir;
  const all = await readdir(join(root, '..', '..', '..'), { recursive: true, withFileTypes: true });
  const files = all.filter((one) => one.isFile()).map((one) => join(one.parentPath, one.name));
  expect(files).toContain(around.places.secretsFile);
  for (const file of files) expect(await readFile(file, 'latin1')).not.toMatch(/hunter2|mcp\.invalid/);
});

test('what a change refuses leaves what there was, and undefined removes it', async () => {
  const store = signInStore(await machine());
  await store.change(KEY, async () => KEPT);
  await expect(store.change(KEY, () => Promise.reject(new Error('no')))).rejects.toThrow('no');
  expect(await store.read(KEY)).toEqual(KEPT);
  await store.change(KEY, async () => undefined);
  expect(await store.read(KEY)).toBeUndefined();
});

test('what a change has got is kept, though its command is told to end meanwhile', async () => {
  const around = await machine();
  const ending = new AbortController();
  const store = signInStore({ ...around, signal: ending.signal });
  const rotated = store.change(KEY, async () => {
    ending.abort();
    return KEPT;
  });
  expect(await rotated).toEqual(KEPT);
  expect(await signInStore(around).read(KEY)).toEqual(KEPT);
  await expect(store.change(KEY, async () => undefined)).rejects.toBe(ending.signal.reason);
});

test('two state directories that share the place of secrets lose no change, and change a sign-in one after the other', async () => {
  const one = await machine();
  const other = { ...one, places: { ...one.places, ...stateIn(join(one.places.temp, 'elsewhere')) } };
  const stores = [signInStore(one), signInStore(other)];
  let turns = 0;
  const turn = async (kept?: KeptSignIn): Promise<KeptSignIn> => {
    turns += 1;
    await setImmediate();
    return { ...KEPT, refreshToken: `${Number(kept?.refreshToken ?? 0) + 1}` };
  };
  const keys = Array.from({ length: 10 }, (_, at) => signInOfWorkload(`a${at}`));
  await Promise.all(keys.flatMap((key) => stores.map((store) => store.change(key, turn))));
  expect(turns).toBe(20);
  for (const key of keys) expect(await stores[0]?.read(key)).toMatchObject({ refreshToken: '2' });
});

function stateIn(stateDir: string): Partial<Places> {
  return { stateDir, locksDir: join(stateDir, 'locks') };
}

test('a change sees what another store of the same user has kept meanwhile', async () => {
  const around = await machine();
  const [one, other] = [signInStore(around), signInStore(around)];
  await one.change(KEY, async () => KEPT);
  const changed = await other.change(KEY, async (kept) => kept && { ...kept, refreshToken: 'r2' });
  expect(changed?.refreshToken).toBe('r2');
  expect(await one.read(KEY)).toEqual(changed);
});

test('where secrets can only be read, nobody is asked to sign in', async () => {
  const around = await machine({ SKEP_SECRETS_PROVIDER: 'environment' });
  const refused = {
    code: 'secrets/read-only',
    message: expect.stringMatching(/^a sign-in cannot be kept: the environment secrets/),
  };
  await expect(signInStore(around).ready()).rejects.toMatchObject(refused);
  let called = false;
  const change = signInStore(around).change(KEY, async () => {
    called = true;
    return KEPT;
  });
  await expect(change).rejects.toMatchObject(refused);
  expect(called).toBe(false);
});

test('without a place for secrets nothing is found, and nothing can be kept', async () => {
  const around = { ...(await machine()), keyrings: [] };
  const store = signInStore(around);
  expect(await store.read(KEY)).toBeUndefined();
  await expect(store.ready()).rejects.toMatchObject({ code: 'secrets/not-set-up' });
});

test('what a later release keeps is not taken for a sign-in', async () => {
  const around = await machine();
  await signInStore(around).ready();
  const store = signInStore(around);
  await store.change(KEY, async () => KEPT);
  await (
    await openProvider(around)
  ).change?.((secrets) => secrets.set(signInSecret(KEY), JSON.stringify({ ...KEPT, version: 2 })));
  await expect(store.read(KEY)).rejects.toMatchObject({ code: 'secrets/damaged', hint: 'sign in again' });
  expect(await store.change(KEY, async (kept) => kept ?? KEPT)).toEqual(KEPT);
});

const ROUNDS = 25;

test('two processes never use the same refresh token twice', async () => {
  const env = { SKEP_SECRETS_PROVIDER: 'encrypted', SKEP_SECRETS_PASSWORD: 'correct horse' };
  const around = await machine(env);
  const { places } = around;
  await signInStore(around).change(KEY, async () => ({ ...KEPT, refreshToken: '0' }));
  // Each takes the number that is kept, and keeps the next one: a number that is taken twice is a token that was used twice.
  const program = `import { signInStore } from ${JSON.stringify(join(import.meta.dirname, 'sign-in-store.ts'))};
    const around = { env: ${JSON.stringify(env)}, places: ${JSON.stringify(places)}, platform: 'linux', uid: 1000,
      signal: new AbortController().signal, keyrings: [] };
    const store = signInStore(around);
    for (let round = 0; round < ${ROUNDS}; round += 1)
      await store.change(${JSON.stringify(KEY)}, async (kept) => {
        console.log(kept.refreshToken);
        return { ...kept, refreshToken: String(Number(kept.refreshToken) + 1) };
      });`;
  const used = await Promise.all(
    [1, 2].map(async () => {
      const child = spawn(process.execPath, ['--input-type=module-typescript', '-e', program], {
        stdio: ['ignore', 'pipe', 'inherit'],
      });
      let said = '';
      child.stdout.on('data', (piece: Buffer) => (said += piece.toString()));
      await once(child, 'close');
      return said.trim().split('\n').map(Number);
    }),
  );
  expect(used.flat().toSorted((a, b) => a - b)).toEqual(Array.from({ length: 2 * ROUNDS }, (_, n) => n));
  expect((await signInStore(around).read(KEY))?.refreshToken).toBe(String(2 * ROUNDS));
}, 60_000);
