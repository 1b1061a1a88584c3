import { createServer, type IncomingHttpHeaders, type OutgoingHttpHeaders } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import {
  AUDIENCE,
  fakeIssuer,
  forged,
  ISSUER,
  NOW,
  signed,
  signingKey,
  type FakeIssuer,
  type SigningKey,
} from '@skep/auth/token/tokens.fixture.ts';
import type { Log } from '@skep/core/log/log.ts';
import { manualClock } from '@skep/core/time/doubles/manual-clock.ts';
import type { Backend } from '../backend/backend.ts';
import { ask, messagesIn, postJson, type Answer } from '../doubles/http-client.ts';
import { modernRequest, modernScript } from '../doubles/modern.ts';
import { ownAuthority } from '../doubles/own-authority.ts';
import { initializeRequest, runningProxy, type RunningProxy } from '../doubles/running-proxy.ts';
import { scriptedServer, type Script } from '../doubles/scripted-server.ts';
import type { SignInSettings } from './sign-in.ts';

const S = NOW / 1_000;
const call = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'x' } };

let key: SigningKey;
let other: SigningKey;
let issuer: FakeIssuer;
let origin: string;

/** The identity provider of `tokens.fixture.ts`, over HTTP. */
const provider = createServer((req, res) => {
  void issuer.fetch(`${ISSUER}${req.url}`).then(async (response) => {
    res.writeHead(response.status, { 'content-type': 'application/json' }).end(await response.text());
  });
});

beforeAll(async () => {
  key = await signingKey('k1');
  other = await signingKey('k1');
  issuer = fakeIssuer([key]);
  await new Promise<void>((resolve) => provider.listen(0, '127.0.0.1', resolve));
  origin = `http://127.0.0.1:${(provider.address() as AddressInfo).port}`;
});
afterAll(() => new Promise((resolve) => provider.close(resolve)));

const settings = (): SignInSettings => ({
  issuer: ISSUER,
  jwksUrl: `${origin}/jwks`,
  audience: AUDIENCE,
  allowHttp: true,
  allowPrivateIP: true,
});

interface Setup extends AsyncDisposable {
  readonly proxy: RunningProxy;
  /** Tool calls that reached the server. */
  readonly calls: () => number;
}

async function setup(changes: Partial<SignInSettings> = {}, script?: Script): Promise<Setup> {
  const server = scriptedServer(script);
  const signIn = { ...settings(), ...changes };
  const proxy = await runningProxy(server, { signIn, clock: manualClock(), osUser: 'alice' });
  return {
    proxy,
    calls: () => server.received.filter(({ method }) => method === 'tools/call').length,
    [Symbol.asyncDispose]: () => proxy.close(),
  };
}

const bearer = (token: string): OutgoingHttpHeaders => ({ Authorization: `Bearer ${token}` });

describe('a client that has to sign in', () => {
  test('calls the server with a good token', async () => {
    await using it = await setup();
    expect(await postJson(it.proxy.url, call, bearer(await signed(key)))).toMatchObject({ status: 200 });
    expect(it.calls()).toBe(1);
  });

  const token =
    (changes: object, header = {}) =>
    async () =>
      bearer(await signed(key, { ...changes }, header));
  const TABLE: readonly [string, () => Promise<OutgoingHttpHeaders> | OutgoingHttpHeaders, string, string][] = [
    ['no header', () => ({}), 'invalid_request', 'a bearer token is needed'],
    ['another scheme', () => ({ Authorization: 'Basic YTpi' }), 'invalid_request', 'Bearer scheme'],
    ['an empty token', () => ({ Authorization: 'Bearer ' }), 'invalid_request', 'empty'],
    [
      'two headers',
      async () => ({ Authorization: [`Bearer ${await signed(key)}`, 'Bearer x'] }),
      'invalid_request',
      'more than one',
    ],
    ['an opaque token', () => bearer('opaque'), 'invalid_token', 'no signed JWT'],
    ['five parts', () => bearer('a.b.c.d.e'), 'invalid_token', 'no signed JWT'],
    ['an expired token', token({ exp: S }), 'invalid_token', 'expired'],
    ['no expiry', token({ exp: undefined }), 'invalid_token', 'no expiry'],
    ['a token of the future', token({ nbf: S + 1 }), 'invalid_token', 'not valid yet'],
    ['a token issued in the future', token({ iat: S + 1 }), 'invalid_token', 'not valid yet'],
    ['another audience', token({ aud: 'other' }), 'invalid_token', 'another audience'],
    ['no audience', token({ aud: undefined }), 'invalid_token', 'another audience'],
    ['another issuer', token({ iss: 'https://evil.test' }), 'invalid_token', 'another issuer'],
    ['no subject', token({ sub: undefined }), 'invalid_token', 'no subject'],
    ['no key id', token({}, { kid: undefined }), 'invalid_token', 'names no key'],
    ['another key', async () => bearer(await signed(other)), 'invalid_token', 'signature'],
    ['a critical header', () => bearer(forged({ alg: 'ES256', kid: 'k1', crit: ['x'], x: 1 }, { iss: ISSUER, exp: S + 9 })), 'invalid_token', 'malformed'],
    ['no algorithm', () => bearer(forged({ alg: 'none', kid: 'k1' }, { iss: ISSUER, exp: S + 9 })), 'invalid_token', 'algorithm'],
    ['a shared key', () => bearer(forged({ alg: 'HS256', kid: 'k1' }, { iss: ISSUER, exp: S + 9 })), 'invalid_token', 'algorithm'],
  ]; // prettier-ignore

  test.each(TABLE)('is refused with %s, and the server hears nothing', async (_name, headers, error, why) => {
    await using it = await setup();
    const answer = await postJson(it.proxy.url, call, await headers());
    expect(answer).toMatchObject({ status: 401, headers: { 'content-type': 'application/json' } });
    expect(JSON.parse(answer.text)).toEqual({ error, error_description: expect.stringContaining(why) });
    expect(it.calls()).toBe(0);
  });

  test('is told where to sign in, without an error where it said nothing of itself', async () => {
    await using it = await setup({ resourceUrl: 'https://r.test/mcp?x=1', scopes: ['a', 'b'] });
    const challenge = async (headers: OutgoingHttpHeaders) =>
      (await postJson(it.proxy.url, call, headers)).headers['www-authenticate'];
    const where =
      `Bearer realm="${ISSUER}", ` +
      'resource_metadata="https://r.test/.well-known/oauth-protected-resource/mcp", scope="a b"';
    expect(await challenge({})).toBe(where);
    expect(await challenge(bearer('x'))).toBe(
      where.replace(
        ', res',
        ', error="invalid_token", error_description="the bearer token is no signed JWT", res',
      ),
    );
  });

  test('whose token lacks a scope gets 403 with what it needs', async () => {
    await using it = await setup({ requiredScopes: ['mcp:call', 'mcp:list'] });
    const statusOf = async (claims: object): Promise<Answer> =>
      postJson(it.proxy.url, call, bearer(await signed(key, { ...claims })));
    const refused = await statusOf({ scope: 'mcp:call' });
    expect(refused.status).toBe(403);
    expect(refused.headers['www-authenticate']).toBe(
      `Bearer realm="${ISSUER}", error="insufficient_scope", ` +
        'error_description="the token needs the scopes: mcp:call mcp:list", scope="mcp:call mcp:list"',
    );
    expect(it.calls()).toBe(0);
    for (const claims of [
      { scope: 'mcp:list x mcp:call' },
      { scp: ['mcp:list', 'mcp:call'] },
      { scp: 'mcp:call mcp:list' },
    ])
      expect((await statusOf(claims)).status).toBe(200);
  });

  test('is judged by keys that only the given authority and the token of a file lead to', async () => {
    const [authority, folder] = [ownAuthority(), await mkdtemp(join(tmpdir(), 'skep-sign-in-'))];
    const [caPath, tokenFile] = [join(folder, 'ca.pem'), join(folder, 'token')];
    await writeFile(caPath, authority.cert);
    await writeFile(tokenFile, 'for-the-keys\n');
    const guarded = createTlsServer(authority, ({ headers }, res) => {
      const keys = headers.authorization === 'Bearer for-the-keys' ? [key.jwk] : [];
      res.writeHead(200, { 'Content-Type': 'application/json' }).end(JSON.stringify({ keys }));
    });
    onTestFinished(async () => {
      guarded.closeAllConnections();
      await new Promise((resolve) => guarded.close(resolve));
      await rm(folder, { recursive: true });
    });
    await new Promise<void>((resolve) => guarded.listen(0, '127.0.0.1', resolve));
    const jwksUrl = `https://localhost:${(guarded.address() as AddressInfo).port}/jwks`;
    const token = bearer(await signed(key));
    const statusWith = async (changes: Partial<SignInSettings>): Promise<number> => {
      await using it = await setup({ jwksUrl, allowHttp: false, ...changes });
      return (await postJson(it.proxy.url, call, token)).status;
    };
    expect(await statusWith({ caPath, tokenFile })).toBe(200);
    expect(await statusWith({ tokenFile })).toBe(503);
    expect(await statusWith({ caPath })).toBe(401);
    expect(await statusWith({ caPath, tokenFile, allowPrivateIP: false })).toBe(503);
  });

  test('has its token in no log, whatever becomes of the call', async () => {
    const told: unknown[] = [];
    const keep = (fields: object, message: string): number => told.push([fields, message]);
    const log: Log = { debug: keep, info: keep, warn: keep, error: keep, child: () => log };
    const server = scriptedServer(({ method }) => {
      if (method === 'tools/call') throw new TypeError('broken');
      return undefined;
    });
    await using proxy = await runningProxy(server, { signIn: settings(), clock: manualClock(), log });
    const [good, expired, bad] = [await signed(key), await signed(key, { exp: S }), await signed(other)];
    for (const token of [good, expired, bad, 'opaque-hunter2'])
      await postJson(proxy.url, { ...call, method: 'x/y' }, bearer(token));
    proxy.backendEnded();
    await postJson(proxy.url, call, bearer(good));
    const text = JSON.stringify(told, (_name, value: unknown) =>
      value instanceof Error ? [value.message, value.stack] : value,
    );
    expect(told.length).toBeGreaterThan(0);
    for (const token of [good, expired, bad, 'opaque-hunter2'])
      for (const part of token.split('.').filter((one) => one.length > 8)) expect(text).not.toContain(part);
  });

  test('gets 503 and a time to come back while the keys cannot be had', async () => {
    issuer.broken.set('/jwks', 500);
    await using it = await setup();
    const answer = await postJson(it.proxy.url, call, bearer(await signed(key)));
    issuer.broken.clear();
    expect(answer).toMatchObject({ status: 503, headers: { 'retry-after': expect.stringMatching(/^\d+$/) } });
    expect(it.calls()).toBe(0);
  });

  test('is nobody else in a session', async () => {
    await using it = await setup();
    const [alice, bob] = [bearer(await signed(key)), bearer(await signed(key, { sub: 'bob' }))];
    const session = (await postJson(it.proxy.url, initializeRequest(), alice)).headers['mcp-session-id'];
    const statusFor = async (who: OutgoingHttpHeaders): Promise<number> =>
      (await postJson(it.proxy.url, call, { ...who, 'Mcp-Session-Id': session })).status;
    expect(await statusFor(alice)).toBe(200);
    expect(await statusFor(bob)).toBe(404);
  });

  test('has a limit of calls that nobody else uses up, in whatever session', async () => {
    const perUser = { maxTokens: 2, refillMs: 60_000 };
    const options = { signIn: settings(), clock: manualClock(), parts: { rateLimit: { perUser } } };
    await using proxy = await runningProxy(scriptedServer(), options);
    const statusFor = async (who: OutgoingHttpHeaders, more: OutgoingHttpHeaders = {}): Promise<number> =>
      (await postJson(proxy.url, call, { ...who, ...more })).status;
    const [alice, bob] = [bearer(await signed(key)), bearer(await signed(key, { sub: 'bob' }))];
    const session = (await postJson(proxy.url, initializeRequest(), alice)).headers['mcp-session-id'];
    // The same person with another token, who says to be elsewhere.
    const again = bearer(await signed(key, { jti: 'another' }));
    expect(await statusFor(alice)).toBe(200);
    expect(await statusFor(alice, { 'Mcp-Session-Id': session })).toBe(200);
    expect(await statusFor(again, { 'X-Forwarded-For': '192.0.2.1' })).toBe(429);
    for (const status of [200, 200, 429]) expect(await statusFor(bob)).toBe(status);
  });

  /** Begins a task with each call of a tool: `task-1`, `task-2`, … */
  const withTasks = (begun: (task: object) => object = (task) => ({ task })): Script => {
    const started: string[] = [];
    return (message, { reply }) => {
      const { method, params } = message;
      const taskId = method === 'tools/call' ? `task-${started.length + 1}` : String(params?.['taskId']);
      if (method === 'tools/call') started.push(taskId);
      if (method === 'tools/call') reply(message, begun({ taskId, status: 'working' }));
      else if (method === 'tasks/list')
        reply(message, { tasks: started.map((one) => ({ taskId: one })), nextCursor: 'c' });
      else if (method?.startsWith('tasks/') === true) reply(message, { taskId, status: 'cancelled' });
      else return undefined;
      return 'handled';
    };
  };

  test('has tasks of one process that nobody else sees, reads or ends', async () => {
    await using it = await setup({}, withTasks());
    const ask = async (who: OutgoingHttpHeaders, method: string, params: object = {}): Promise<unknown> => {
      const session = (await postJson(it.proxy.url, initializeRequest(), who)).headers['mcp-session-id'];
      const headers = { ...who, Accept: 'application/json', 'Mcp-Session-Id': session };
      return JSON.parse((await postJson(it.proxy.url, { ...call, method, params }, headers)).text);
    };
    const [alice, bob] = [bearer(await signed(key)), bearer(await signed(key, { sub: 'bob' }))];
    for (const who of [alice, bob]) await ask(who, 'tools/call', { name: 'x', task: {} });
    for (const method of ['tasks/get', 'tasks/result', 'tasks/cancel', 'tasks/update']) {
      expect(await ask(alice, method, { taskId: 'task-1' }), method).toHaveProperty('result');
      for (const taskId of ['task-1', 'task-3', undefined])
        expect(await ask(bob, method, { taskId }), method).toMatchObject({ id: 1, error: { code: -32602 } });
    }
    expect(await ask(bob, 'tasks/list')).toMatchObject({
      result: { tasks: [{ taskId: 'task-2' }], nextCursor: 'c' },
    });
  });

  test('has no tasks of a process that was started anew', async () => {
    await using it = await setup({}, withTasks());
    const alice = bearer(await signed(key));
    const task = { ...call, method: 'tasks/get', params: { taskId: 'task-1' } };
    const asked = async (body: object): Promise<unknown> =>
      JSON.parse((await postJson(it.proxy.url, body, { ...alice, Accept: 'application/json' })).text);
    await asked(call);
    expect(await asked(task)).toHaveProperty('result');
    it.proxy.backendStarted();
    expect(await asked(task)).toMatchObject({ error: { code: -32602 } });
  });

  // The extension of MCP 2026-07-28 has no list, and its answers are the task.
  test.each<[string, Script]>([
    ['modern', modernScript(withTasks((task) => ({ resultType: 'task', ...task })))],
    ['legacy', withTasks()],
  ])(
    'has tasks of one %s process that nobody else sees, reads or ends with modern requests',
    async (_era, script) => {
      await using it = await setup({}, script);
      const ask = async (who: OutgoingHttpHeaders, method: string, params: object): Promise<unknown> => {
        const { body, headers } = modernRequest(method, { ...params });
        return messagesIn(await postJson(it.proxy.url, body, { ...headers, ...who })).at(-1);
      };
      const [alice, bob] = [bearer(await signed(key)), bearer(await signed(key, { sub: 'bob' }))];
      for (const who of [alice, bob]) await ask(who, 'tools/call', { name: 'x' });
      for (const method of ['tasks/get', 'tasks/update', 'tasks/cancel']) {
        expect(await ask(alice, method, { taskId: 'task-1' }), method).toHaveProperty('result');
        for (const taskId of ['task-1', 'task-3', undefined])
          expect(await ask(bob, method, { taskId }), method).toMatchObject({
            id: 1,
            error: { code: -32602 },
          });
      }
      const listed = (await ask(bob, 'tasks/list', {})) as { result?: { tasks: object } };
      expect(listed.result?.tasks ?? [{ taskId: 'task-2' }]).toEqual([{ taskId: 'task-2' }]);
    },
  );

  test('is not whoever hosts the proxy, whose pass nobody can guess', async () => {
    await using it = await setup();
    const pass = it.proxy.pass ?? '';
    expect(pass).toHaveLength(43);
    expect((await postJson(it.proxy.url, call, { 'X-Skep-Pass': pass })).status).toBe(200);
    const wrong = `${pass.slice(0, -1)}${pass.endsWith('A') ? 'B' : 'A'}`;
    expect((await postJson(it.proxy.url, call, { 'X-Skep-Pass': wrong })).status).toBe(401);
  });
});

describe('the metadata of the endpoint', () => {
  const get = (it: Setup, path: string, method = 'GET') =>
    ask(`${it.proxy.origin}${path}`, { method, headers: {} });

  test('needs no token, below its path too', async () => {
    await using it = await setup({ resourceUrl: 'https://r.test/mcp' });
    for (const path of ['', '/mcp', '/a/b?x']) {
      const { status, text } = await get(it, `/.well-known/oauth-protected-resource${path}`);
      expect(status).toBe(200);
      expect(JSON.parse(text)).toEqual({
        resource: 'https://r.test/mcp',
        authorization_servers: [ISSUER],
        bearer_methods_supported: ['header'],
        scopes_supported: ['openid'],
      });
    }
    expect(await get(it, '/.well-known/oauth-protected-resource', 'HEAD')).toMatchObject({
      status: 200,
      text: '',
    });
    expect(await get(it, '/.well-known/oauth-protected-resource', 'POST')).toMatchObject({ status: 405 });
    expect(await get(it, '/.well-known/oauth-protected-resource-x')).toMatchObject({ status: 404 });
    expect(await get(it, '/.well-known/openid-configuration')).toMatchObject({ status: 404 });
  });

  test('may be read by every page that may call, and asked for ahead by whoever names none', async () => {
    await using it = await setup({ resourceUrl: 'https://r.test/mcp' });
    const url = `${it.proxy.origin}/.well-known/oauth-protected-resource/mcp`;
    for (const [from, allowed] of [
      [{}, '*'],
      [{ Origin: it.proxy.origin }, it.proxy.origin],
    ] as const) {
      const ahead = await ask(url, { method: 'OPTIONS', headers: from });
      expect(ahead).toMatchObject({
        status: 204,
        headers: {
          'access-control-allow-origin': allowed,
          'access-control-allow-methods': 'GET, OPTIONS',
          'access-control-allow-headers': 'mcp-protocol-version, Content-Type, Authorization',
          'access-control-max-age': '86400',
        },
      });
      const { status, headers } = await ask(url, { method: 'GET', headers: from });
      expect([status, headers['access-control-allow-origin']]).toEqual([200, allowed]);
    }
    for (const method of ['OPTIONS', 'GET'])
      expect((await ask(url, { method, headers: { Origin: 'https://evil.test' } })).status).toBe(403);
    expect((await ask(it.proxy.url, { method: 'OPTIONS', headers: {} })).status).toBe(405);
  });

  test('names the address that was asked where no other was given', async () => {
    await using it = await setup({ scopes: ['a'] });
    const { text } = await get(it, '/.well-known/oauth-protected-resource/mcp');
    expect(JSON.parse(text)).toMatchObject({ resource: it.proxy.url, scopes_supported: ['a'] });
  });

  test('is not there where nobody knows where to sign in', async () => {
    await using it = await setup({ issuer: undefined });
    expect(await get(it, '/.well-known/oauth-protected-resource')).toMatchObject({ status: 404 });
  });
});

describe('a server that speaks HTTP', () => {
  /** What it was asked with. */
  async function throughTo(options: { readonly signIn?: SignInSettings }, headers: OutgoingHttpHeaders) {
    let seen: IncomingHttpHeaders = {};
    const server = createServer((req, res) => {
      seen = req.headers;
      res.writeHead(200, { 'content-type': 'application/json' }).end('{"jsonrpc":"2.0","id":1,"result":{}}');
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    const backend: Backend = { kind: 'http', target: new URL(`http://127.0.0.1:${port}`) };
    await using proxy = await runningProxy({ backend }, { clock: manualClock(), ...options });
    const { status } = await postJson(proxy.url, call, { ...headers, Cookie: 'a=b', 'X-Own': '1' });
    await new Promise((resolve) => server.close(resolve));
    return { status, seen };
  }

  test('never sees what a client signed in with', async () => {
    const { status, seen } = await throughTo({ signIn: settings() }, bearer(await signed(key)));
    expect(status).toBe(200);
    expect(seen).toMatchObject({ 'x-own': '1' });
    expect(seen).not.toHaveProperty('authorization');
    expect(seen).not.toHaveProperty('cookie');
  });

  /** A server that answers as the path says, and tells who asked it for what. */
  async function backendOf(kind: 'http' | 'sse') {
    const asked: string[] = [];
    const server = createServer((req, res) => {
      asked.push(`${req.method} ${req.url}`);
      if (req.url?.startsWith('/challenge') === true)
        res.writeHead(401, { 'www-authenticate': 'Bearer resource_metadata="https://evil.test/x"' }).end();
      else if (req.url?.startsWith('/away') === true)
        res.writeHead(307, { location: '//127.0.0.1:1/b/mcp' }).end();
      else if (kind === 'sse' && req.method === 'GET') {
        const to = req.url?.includes('evil') === true ? 'https://evil.test/m' : '/messages?sessionId=7';
        res.writeHead(200, { 'content-type': 'text/event-stream' }).write(`event: endpoint\ndata: ${to}\n\n`);
      } else
        res
          .writeHead(200, { 'content-type': 'application/json', 'mcp-session-id': '7' })
          .end('{"jsonrpc":"2.0","id":1,"result":{}}');
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    const backend: Backend = { kind, target: new URL(`http://127.0.0.1:${port}`) };
    const proxy = await runningProxy({ backend }, { clock: manualClock(), signIn: settings() });
    return {
      proxy,
      asked,
      async [Symbol.asyncDispose]() {
        await proxy.close();
        server.closeAllConnections();
        await new Promise((resolve) => server.close(resolve));
      },
    };
  }

  test("has sessions that are nobody else's", async () => {
    await using it = await backendOf('http');
    const [alice, bob] = [bearer(await signed(key)), bearer(await signed(key, { sub: 'bob' }))];
    expect((await postJson(it.proxy.url, initializeRequest(), alice)).headers['mcp-session-id']).toBe('7');
    const before = it.asked.length;
    const named = (who: OutgoingHttpHeaders): OutgoingHttpHeaders => ({ ...who, 'Mcp-Session-Id': '7' });
    expect((await postJson(it.proxy.url, call, named(bob))).status).toBe(404);
    for (const method of ['GET', 'DELETE'])
      expect((await ask(it.proxy.url, { method, headers: named(bob) })).status).toBe(404);
    expect(it.asked).toHaveLength(before);
    expect((await postJson(it.proxy.url, call, named(alice))).status).toBe(200);
  });

  test('takes messages of a stream from whom it was opened for alone', async () => {
    await using it = await backendOf('sse');
    const [alice, bob] = [bearer(await signed(key)), bearer(await signed(key, { sub: 'bob' }))];
    const to = `${it.proxy.origin}/messages?sessionId=7`;
    expect((await postJson(to, call, alice)).status).toBe(404);
    const stream = await fetch(it.proxy.url, { headers: { Authorization: String(alice['Authorization']) } });
    const { value } = (await stream.body?.getReader().read()) ?? {};
    expect(new TextDecoder().decode(value)).toContain('data: /messages?sessionId=7');
    expect((await postJson(to, call, bob)).status).toBe(404);
    expect((await postJson(`${to}&x`, call, bob)).status).toBe(404);
    expect((await postJson(to, call, alice)).status).toBe(200);
    expect(it.asked.filter((one) => one.startsWith('POST'))).toHaveLength(1);
  });

  test('cannot send whoever holds a token elsewhere', async () => {
    const alice = bearer(await signed(key));
    await using it = await backendOf('http');
    const challenged = await postJson(`${it.proxy.origin}/challenge`, call, alice);
    expect(challenged.status).toBe(401);
    expect(challenged.headers).not.toHaveProperty('www-authenticate');
    expect(await postJson(`${it.proxy.origin}/away`, call, alice)).toMatchObject({ status: 502 });
    await using sse = await backendOf('sse');
    const stream = await fetch(`${sse.proxy.url}?evil`, {
      headers: { Authorization: String(alice['Authorization']) },
    });
    await expect(stream.text()).rejects.toThrow();
  });

  test('gets all of it where nobody has to sign in', async () => {
    const { seen } = await throughTo({}, bearer('for-the-server'));
    expect(seen).toMatchObject({ authorization: 'Bearer for-the-server', cookie: 'a=b' });
  });
});

describe('a proxy does not start', () => {
  test.each<[string, Partial<SignInSettings>, string]>([
    ['without anybody to ask', { issuer: undefined, jwksUrl: undefined }, 'auth/invalid-provider'],
    ['with an issuer that is no URL', { issuer: 'idp' }, 'auth/invalid-provider'],
    ['with plain HTTP that was not allowed', { allowHttp: false }, 'auth/invalid-provider'],
    ['with a login in an address', { jwksUrl: 'https://a:b@idp.test/jwks' }, 'auth/invalid-provider'],
    ['with a resource that is no URL', { resourceUrl: 'mcp' }, 'auth/invalid-provider'],
    ['with authorities that are not there', { caPath: '/nowhere/ca.pem' }, 'file/not-found'],
    ['with a token file that is not there', { tokenFile: '/nowhere/token' }, 'file/not-found'],
  ])('%s', async (_name, changes, code) => {
    await expect(setup(changes)).rejects.toMatchObject({ code });
  });
});
