import { readFileSync, statSync } from 'node:fs';
import path from 'node:path';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { LoggingMessageNotificationSchema } from '@modelcontextprotocol/sdk/types.js';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { AUDIENCE, startIdentityProvider, type IdentityProvider } from './fixtures/identity-provider.ts';
import { redisServer, type RedisServer } from './fixtures/redis-server.ts';
import { begunAt, goingOn, post, Replica, statusOf } from './fixtures/replica.ts';
import { sessionServer, type SessionServer } from './fixtures/session-server.ts';
import { component, title } from './require.ts';

// Two packed proxies, each of a user and a state directory of its own, before one server with sessions; Redis is all they share.

const redis = await component('redis');
const LONG = { timeout: 60_000 };

describe.skipIf(!redis.available)(title('two replicas of one proxy', redis), () => {
  let server: SessionServer;
  let store: RedisServer;
  let a: Replica;
  let b: Replica;

  beforeAll(async () => {
    server = await sessionServer();
    store = await redisServer();
    [a, b] = [new Replica([server.url], store), new Replica([server.url], store)];
    await Promise.all([a.start(), b.start()]);
  });
  afterAll(async () => {
    // First what nobody else ends, should one of the others take too long.
    await store[Symbol.asyncDispose]();
    await server[Symbol.asyncDispose]();
    await Promise.all([a.end(), b.end()]);
  });

  test('serve one legacy session while either is killed, its stream and its end too', async () => {
    const session = await begunAt(a);
    const atB = await goingOn(b.url, session);
    const heard: unknown[] = [];
    atB.setNotificationHandler(
      LoggingMessageNotificationSchema,
      ({ params }) => void heard.push(params.data),
    );
    expect((await atB.listTools()).tools.map(({ name }) => name)).toEqual(['hello']);
    await expect
      .poll(async () => {
        // Official clients open their stream by this; a server that has not missed the other yet refuses a second one.
        if (heard.length === 0) await atB.notification({ method: 'notifications/initialized' });
        await server.say('by itself');
        return heard.length;
      }, LONG)
      .toBeGreaterThan(0);
    await a.kill();
    await expect(fetch(a.url)).rejects.toThrow();
    expect(await atB.callTool({ name: 'hello' })).toMatchObject({ content: [{ text: 'hello' }] });
    await atB.close();
    await a.start();
    const atA = await goingOn(a.url, session);
    await b.kill();
    expect(await atA.callTool({ name: 'hello' })).toMatchObject({ content: [{ text: 'hello' }] });
    await atA.close();
    await b.start();
    expect(await statusOf(b.url, session)).toBe(200);
    const ending = await fetch(b.url, { method: 'DELETE', headers: { 'mcp-session-id': session } });
    expect(ending.status).toBeLessThan(300);
    for (const { url } of [a, b]) {
      const answer = await post(url, session);
      expect(answer.status).toBe(404);
      expect(await answer.json()).toMatchObject({ error: { code: -32001 } });
    }
  });

  test('go on when the server forgets, and agree on what it calls the session then', async () => {
    const session = await begunAt(a);
    const before = server.sessions();
    server.forget();
    const urls = [a.url, b.url, a.url, b.url];
    expect(before).toBeGreaterThan(0);
    expect(await Promise.all(urls.map((url) => statusOf(url, session)))).toEqual([200, 200, 200, 200]);
    for (const url of urls) expect(await statusOf(url, session)).toBe(200);
  });

  test.each(['kept', 'lost'] as const)('lose nothing while Redis is away; its data is %s', async (data) => {
    const session = await begunAt(a);
    await store.kill();
    const late = await begunAt(a);
    for (const one of [session, late]) {
      expect(await statusOf(a.url, one)).toBe(200);
      const refused = await post(b.url, one);
      expect([refused.status, refused.headers.get('retry-after')]).toEqual([503, '5']);
      expect(await refused.json()).toMatchObject({
        error: { message: 'what other replicas know of sessions cannot be had now' },
      });
    }
    await store.start(data);
    for (const one of [session, late]) await expect.poll(() => statusOf(b.url, one), LONG).toBe(200);
    await a.kill();
    for (const one of [session, late]) expect(await statusOf(b.url, one)).toBe(200);
    await a.start();
  });

  test('put neither the password of Redis nor a session where others read', async () => {
    const session = await begunAt(a);
    const dump = await store.dump();
    expect(dump).toContain('skep:session:');
    expect(dump).not.toContain(session);
    expect(dump).not.toContain('clientInfo');
    const files = a.user.leftFiles().map((file) => path.join(a.user.dir, file));
    const texts = files.filter((file) => statSync(file).isFile()).map((file) => readFileSync(file, 'latin1'));
    expect(texts.join('')).toContain('session_redis');
    expect(texts.join('')).not.toContain(store.password);
  });

  test('are no use for a server that speaks stdio, which is said at once', async () => {
    const args = ['run', 'npx://nothing', '--transport', 'stdio', '--session-redis', store.address];
    const { code, stderr } = await a.user.skep(args);
    expect(code).not.toBe(0);
    expect(stderr).toContain('--session-redis is for servers of streamable HTTP, and this one speaks stdio');
    const inUrl = await a.user.skep(['run', server.url, '--session-redis', 'redis://:hush@127.0.0.1']);
    expect(inUrl.code).not.toBe(0);
    expect(inUrl.stderr).toContain('--session-redis-password-file');
    expect(inUrl.stderr).not.toContain('hush');
  });
});

describe.skipIf(!redis.available)(title('two replicas whose clients sign in', redis), () => {
  let server: SessionServer;
  let store: RedisServer;
  let idp: IdentityProvider;
  let replicas: readonly Replica[];

  beforeAll(async () => {
    [server, store, idp] = await Promise.all([sessionServer(), redisServer(), startIdentityProvider()]);
    replicas = [0, 1].map(() => {
      const oidc = ['--oidc-issuer', idp.issuer, '--oidc-audience', AUDIENCE, '--oidc-insecure-allow-http'];
      return new Replica([server.url, ...oidc, '--jwks-allow-private-ip'], store);
    });
    await Promise.all(replicas.map((one) => one.start()));
  });
  afterAll(async () => {
    await store[Symbol.asyncDispose]();
    await idp.stop();
    await server[Symbol.asyncDispose]();
    await Promise.all(replicas.map((one) => one.end()));
  });

  test('let nobody use the session of another, whichever was asked first', async () => {
    const [a, b] = replicas.map(({ url }) => url) as [string, string];
    const ann = await idp.token({ sub: 'ann' });
    const bob = await idp.token({ sub: 'bob' });
    const client = new Client({ name: 'test', version: '1' });
    const transport = new StreamableHTTPClientTransport(new URL(a), {
      requestInit: { headers: { authorization: `Bearer ${ann}` } },
    });
    await client.connect(transport);
    const session = transport.sessionId ?? '';
    expect(await statusOf(b, session, bob)).toBe(404);
    expect(await statusOf(b, session, ann)).toBe(200);
    expect(await statusOf(b, session, bob)).toBe(404);
    expect(await statusOf(a, session, bob)).toBe(404);
    await store.kill();
    expect(await statusOf(b, session, bob)).toBe(404);
    expect(await statusOf(b, session, ann)).toBe(200);
    await store.start('lost');
    await client.close();
  });
});
