import { randomUUID } from 'node:crypto';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import { LoggingMessageNotificationSchema } from '@modelcontextprotocol/sdk/types.js';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { freePort } from './fixtures/free-port.ts';
import { AUDIENCE, startIdentityProvider, type IdentityProvider } from './fixtures/identity-provider.ts';
import { redisServer, type RedisServer } from './fixtures/redis-server.ts';
import { component, title } from './require.ts';
import { ended, openUser, printed, type TestUser } from './skep.ts';

// Two packed proxies, each of a user and a state directory of its own, before one server with sessions; Redis is all they share.

const redis = await component('redis');
const LONG = { timeout: 60_000 };

/** The official SDK's server, whose sessions are in its memory; it says something by itself when it is told to. */
async function sessionServer() {
  const known = new Map<string, { transport: StreamableHTTPServerTransport; server: McpServer }>();
  const listener = async (
    req: Parameters<StreamableHTTPServerTransport['handleRequest']>[0],
    res: Parameters<StreamableHTTPServerTransport['handleRequest']>[1],
  ): Promise<void> => {
    const id = req.headers['mcp-session-id'];
    const found = known.get(String(id));
    if (found !== undefined) return found.transport.handleRequest(req, res);
    if (id !== undefined || req.method !== 'POST') return void res.writeHead(404).end();
    const server = new McpServer({ name: 'one', version: '1' }, { capabilities: { logging: {} } });
    server.registerTool('hello', { description: 'Greets' }, () => ({
      content: [{ type: 'text', text: 'hello' }],
    }));
    const transport: StreamableHTTPServerTransport = new StreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      onsessioninitialized: (session) => void known.set(session, { transport, server }),
      onsessionclosed: (session) => void known.delete(session),
    });
    await server.connect(transport);
    return transport.handleRequest(req, res);
  };
  const http: Server = createServer((req, res) => void listener(req, res)).listen(0, '127.0.0.1');
  await once(http, 'listening');
  return {
    url: `http://127.0.0.1:${(http.address() as AddressInfo).port}/mcp`,
    sessions: () => known.size,
    forget: () => known.clear(),
    async say(data: string) {
      for (const { server } of known.values())
        await server.server.sendLoggingMessage({ level: 'info', data });
    },
    async [Symbol.asyncDispose]() {
      http.closeAllConnections();
      await new Promise<void>((resolve) => http.close(() => resolve()));
    },
  };
}

/** One replica: `skep run … --foreground`, killed and started again on its port. */
class Replica {
  readonly user: TestUser;
  readonly #args: readonly string[];
  #child: ChildProcess | undefined;
  #port = 0;

  constructor(args: readonly string[]) {
    this.user = openUser();
    this.#args = args;
  }

  get url(): string {
    return `http://127.0.0.1:${this.#port}/mcp`;
  }

  async start(): Promise<void> {
    this.#port ||= await freePort();
    if (this.#child !== undefined) expect(await this.user.skep(['rm', 'one'])).toMatchObject({ code: 0 });
    const args = ['run', ...this.#args, '--name', 'one', '--foreground', '--proxy-port', String(this.#port)];
    this.#child = this.user.start(args);
    await printed(this.#child, 'Press Ctrl-C');
  }

  async kill(): Promise<void> {
    if (this.#child === undefined || this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const gone = ended(this.#child);
    this.#child.kill('SIGKILL');
    await gone;
  }

  async end(): Promise<void> {
    await this.kill();
    await this.user.end();
  }
}

const MESSAGE = { jsonrpc: '2.0', id: 7, method: 'tools/call', params: { name: 'hello', arguments: {} } };

async function post(url: string, session: string | undefined, token?: string): Promise<Response> {
  return fetch(url, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      'mcp-protocol-version': '2025-11-25',
      ...(session === undefined ? {} : { 'mcp-session-id': session }),
      ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
    },
    body: JSON.stringify(MESSAGE),
  });
}

const statusOf = async (url: string, session: string, token?: string): Promise<number> => {
  const answer = await post(url, session, token);
  await answer.text();
  return answer.status;
};

/** A client that has a session already: the official one, which goes on with it at another address. */
async function goingOn(url: string, session: string, headers: Record<string, string> = {}): Promise<Client> {
  const client = new Client({ name: 'test', version: '1' });
  const transport = new StreamableHTTPClientTransport(new URL(url), {
    sessionId: session,
    requestInit: { headers },
  });
  transport.setProtocolVersion('2025-11-25');
  await client.connect(transport);
  return client;
}

describe.skipIf(!redis.available)(title('two replicas of one proxy', redis), () => {
  let server: Awaited<ReturnType<typeof sessionServer>>;
  let store: RedisServer;
  let a: Replica;
  let b: Replica;

  beforeAll(async () => {
    server = await sessionServer();
    store = await redisServer();
    [a, b] = ['a', 'b'].map(() => {
      const args: string[] = [server.url, '--session-redis', store.address];
      const replica = new Replica(args);
      const file = path.join(replica.user.dir, 'redis-password');
      writeFileSync(file, `${store.password}\n`, { mode: 0o600 });
      args.push('--session-redis-password-file', file);
      return replica;
    }) as [Replica, Replica];
    await Promise.all([a.start(), b.start()]);
  });
  afterAll(async () => {
    // First what nobody else ends, should one of the others take too long.
    await store[Symbol.asyncDispose]();
    await server[Symbol.asyncDispose]();
    await Promise.all([a.end(), b.end()]);
  });

  async function begun(replica: Replica): Promise<string> {
    const client = new Client({ name: 'test', version: '1' });
    const transport = new StreamableHTTPClientTransport(new URL(replica.url));
    await client.connect(transport);
    await client.callTool({ name: 'hello' });
    const session = transport.sessionId ?? '';
    // Without DELETE: the session goes on.
    await client.close();
    return session;
  }

  test('serve one legacy session while either is killed, its stream and its end too', async () => {
    const session = await begun(a);
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
    const session = await begun(a);
    const before = server.sessions();
    server.forget();
    const urls = [a.url, b.url, a.url, b.url];
    expect(before).toBeGreaterThan(0);
    expect(await Promise.all(urls.map((url) => statusOf(url, session)))).toEqual([200, 200, 200, 200]);
    for (const url of urls) expect(await statusOf(url, session)).toBe(200);
  });

  test.each(['kept', 'lost'] as const)('lose nothing while Redis is away; its data is %s', async (data) => {
    const session = await begun(a);
    await store.kill();
    const late = await begun(a);
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
    const session = await begun(a);
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
  let server: Awaited<ReturnType<typeof sessionServer>>;
  let store: RedisServer;
  let idp: IdentityProvider;
  let replicas: readonly Replica[];

  beforeAll(async () => {
    [server, store, idp] = await Promise.all([sessionServer(), redisServer(), startIdentityProvider()]);
    replicas = [0, 1].map(() => {
      const oidc = ['--oidc-issuer', idp.issuer, '--oidc-audience', AUDIENCE, '--oidc-insecure-allow-http'];
      const args = [server.url, '--session-redis', store.address, ...oidc, '--jwks-allow-private-ip'];
      const replica = new Replica(args);
      const file = path.join(replica.user.dir, 'redis-password');
      writeFileSync(file, store.password);
      args.push('--session-redis-password-file', file);
      return replica;
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
