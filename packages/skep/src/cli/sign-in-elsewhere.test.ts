import { mkdtemp, rm } from 'node:fs/promises';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import type { KeptSignIn } from '@skep/auth/sign-in/port.ts';
import { listen } from '@skep/core/fetch/listen.ts';
import { places as placesOf } from '@skep/core/files/places.ts';
import { expect, onTestFinished, test } from 'vitest';
import { MemoryKeyring } from '../secrets/keyring/keyring.fixture.ts';
import { signInOfWorkload, signInStore } from '../secrets/sign-in-store.ts';
import { signOutElsewhere } from './sign-in-elsewhere.ts';

test('what is withdrawn at a logout is what was kept last, and is kept no more by then', async () => {
  const home = await mkdtemp(join(tmpdir(), 'skep-sign-out-'));
  onTestFinished(() => rm(home, { recursive: true }));
  const around = {
    env: {},
    places: placesOf({ env: {}, home, platform: 'linux', temp: home }),
    platform: 'linux',
    uid: 1000,
    signal: new AbortController().signal,
    keyrings: [new MemoryKeyring({ maxChars: 100_000 })],
  } as const;
  const store = signInStore(around);
  const key = signInOfWorkload('a1');
  const seen: [string | null, KeptSignIn | undefined][] = [];
  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const token = new URLSearchParams(await text(request)).get('token');
    seen.push([token, await store.read(key)]);
    response.end();
  };
  const server = createServer((request, response) => void answer(request, response));
  onTestFinished(() => void server.close());
  const origin = `http://127.0.0.1:${await listen(server, '127.0.0.1', 0)}`;
  const kept: KeptSignIn = {
    version: 1,
    way: 'browser',
    resource: `${origin}/mcp`,
    issuer: origin,
    tokenEndpoint: `${origin}/token`,
    revocationEndpoint: `${origin}/revoke`,
    client: { id: 'c1', authMethod: 'none' },
    scopes: [],
    mayBePrivate: true,
    refreshToken: 'refresh-1',
  };
  await store.change(key, async () => kept);
  // A refresh under way holds the entry, and puts another token there.
  const refreshing = Promise.withResolvers<void>();
  const refreshed = store.change(key, async () => {
    await refreshing.promise;
    return { ...kept, refreshToken: 'refresh-2' };
  });
  const out = signOutElsewhere({ name: 'a1', caPath: undefined }, around);
  refreshing.resolve();
  await refreshed;
  expect(await out).toBe('out');
  expect(seen).toEqual([['refresh-2', undefined]]);
  expect(await signOutElsewhere({ name: 'a1', caPath: undefined }, around)).toBe('was-out');
});
