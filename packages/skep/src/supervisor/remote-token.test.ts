import { createServer } from 'node:http';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { memoryStore } from '@skep/auth/sign-in/memory-store.fixture.ts';
import type { KeptSignIn } from '@skep/auth/sign-in/port.ts';
import { listen } from '@skep/core/fetch/listen.ts';
import { silentLog } from '@skep/core/log/log.ts';
import { manualClock } from '@skep/core/time/doubles/manual-clock.ts';
import { expect, onTestFinished, test } from 'vitest';
import { decodeRunConfig } from '../run-config/run-config.ts';
import { signInOfWorkload } from '../secrets/sign-in-store.ts';
import { openRemoteToken } from './remote-token.ts';

const KEY = signInOfWorkload('a1');
const KEPT: KeptSignIn = {
  version: 1,
  way: 'browser',
  resource: 'https://mcp.invalid/mcp',
  issuer: 'https://issuer.invalid',
  tokenEndpoint: 'https://issuer.invalid/token',
  client: { id: 'c1', authMethod: 'none' },
  scopes: ['a'],
  mayBePrivate: false,
  accessToken: 'access-1',
  obtainedAt: 0,
  expiresAt: 3_600_000,
};

function opened(auth: object, { url = KEPT.resource, kept = new Map([[KEY, KEPT]]) } = {}) {
  const clock = manualClock(60_000);
  const store = memoryStore(kept);
  const config = decodeRunConfig(
    { name: 'a1', image: url, remote_url: url, transport: 'streamable-http', remote_auth_config: auth },
    'f',
  );
  const deps = {
    signIns: async () => store,
    secretOf: async () => undefined,
    clock,
    log: silentLog,
    random: () => 0,
  };
  return { clock, store, token: openRemoteToken(config, deps) };
}

test('a token in a file is read again when the server refuses it', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'skep-token-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  const file = join(folder, 'token');
  await writeFile(file, 'one\n');
  const token = await opened({ bearer_token_file: file }).token;
  expect(await token.token()).toBe('one');
  expect(await token.refused('one')).toBeUndefined();
  await writeFile(file, 'two\n');
  expect(await token.refused('one')).toBe('two');
  expect(await token.token()).toBe('two');
  await writeFile(file, 'a b\n');
  expect(await token.refused('two')).toBeUndefined();
});

test('a file that holds no token is named at the start', async () => {
  await expect(opened({ bearer_token_file: '/nowhere/token' }).token).rejects.toMatchObject({
    code: 'file/not-found',
  });
});

test('the token of a sign-in is shown to the server that it is for', async () => {
  const token = await opened({}).token;
  expect(await token.token()).toBe('access-1');
  await token.close();
});

test('a sign-in to another origin is left alone, and nobody is signed in', async () => {
  const { store, token: opening } = opened({}, { url: 'https://other.invalid/mcp' });
  const token = await opening;
  await expect(token.token()).rejects.toMatchObject({ code: 'auth/not-signed-in' });
  expect(token.state()).toBe('unauthenticated');
  expect(token.advice).toBe('skep auth login a1');
  expect(store.kept.get(KEY)).toBe(KEPT);
  await token.close();
});

test('a refresh that is under way when its workload ends is kept', async () => {
  const answer = Promise.withResolvers<void>();
  let asked = 0;
  const server = createServer((_request, response) => {
    asked += 1;
    const body = { access_token: 'access-2', refresh_token: 'refresh-2', token_type: 'Bearer' };
    response.setHeader('content-type', 'application/json');
    void answer.promise.then(() => response.end(JSON.stringify(body)));
  });
  onTestFinished(() => void server.close());
  const tokenEndpoint = `http://127.0.0.1:${await listen(server, '127.0.0.1', 0)}/token`;
  const ended = { ...KEPT, tokenEndpoint, mayBePrivate: true, expiresAt: 1, refreshToken: 'refresh-1' };
  const { store, token: opening } = opened({}, { kept: new Map([[KEY, ended]]) });
  const token = await opening;
  const shown = token.token();
  await expect.poll(() => asked).toBe(1);
  const closed = token.close();
  answer.resolve();
  await closed;
  expect(await shown).toBe('access-2');
  expect(store.kept.get(KEY)).toMatchObject({ refreshToken: 'refresh-2' });
});

test('a login is noticed though nobody calls', async () => {
  const { clock, store, token: opening } = opened({}, { kept: new Map() });
  const token = await opening;
  const states: string[] = [];
  token.follow((state) => states.push(state));
  await expect(token.token()).rejects.toMatchObject({ code: 'auth/not-signed-in' });
  await store.change(KEY, async () => KEPT);
  clock.pass(10_000);
  await expect.poll(() => states.at(-1)).toBe('running');
  await token.close();
});
