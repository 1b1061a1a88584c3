import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { AUDIENCE, startIdentityProvider, type IdentityProvider } from './fixtures/identity-provider.ts';
import { redisServer, type RedisServer } from './fixtures/redis-server.ts';
import { begunAt, goingOn, post, Replica, statusOf } from './fixtures/replica.ts';
import { expectChangeHeard, sessionServer, type SessionServer } from './fixtures/session-server.ts';
import { component, title } from './require.ts';

// Two packed proxies with a tool list, policies and an audit log, before one server with sessions; Redis is all they share.

const redis = await component('redis');
const LONG = { timeout: 60_000 };
const PING = { jsonrpc: '2.0', id: 3, method: 'ping' };
const POLICIES = `version: "1.0"
type: cedarv1
cedar:
  policies:
    - 'permit(principal, action == Action::"call_tool", resource == Tool::"hello");'
    - 'permit(principal, action == Action::"call_tool", resource == Tool::"hidden");'
`;

/** What is encrypted is written in letters, digits, `-` and `_`: chance does not make this of them. */
const SUBJECT = 'ann@idp.test';

describe.skipIf(!redis.available)(title('two replicas of a proxy that reads messages', redis), () => {
  let server: SessionServer;
  let store: RedisServer;
  let idp: IdentityProvider;
  let a: Replica;
  let b: Replica;
  let ann: string;
  let bob: string;

  function replica(): Replica {
    const oidc = ['--oidc-issuer', idp.issuer, '--oidc-audience', AUDIENCE, '--oidc-insecure-allow-http'];
    const args = [server.url, ...oidc, '--jwks-allow-private-ip', '--tools', 'hello,forbidden'];
    const steps = ['--authz-config', 'policies.yaml', '--audit-config', 'audit.yaml'];
    const made = new Replica([...args, ...steps], store);
    const { dir } = made.user;
    writeFileSync(path.join(dir, 'policies.yaml'), POLICIES);
    writeFileSync(path.join(dir, 'audit.yaml'), 'logFile: calls.log\nincludeRequestData: true\n');
    return made;
  }

  /** Tools that were called through it, in order. */
  const audited = ({ user }: Replica): readonly (readonly unknown[])[] =>
    readFileSync(path.join(user.dir, 'calls.log'), 'utf8')
      .split('\n')
      .filter((line) => line.includes('"mcp_tool_call"'))
      .map((line) => JSON.parse(line))
      .map(({ target, outcome, subjects }) => [target.name, outcome, subjects.user_id]);

  beforeAll(async () => {
    [server, store, idp] = await Promise.all([
      sessionServer(['hello', 'hidden', 'forbidden']),
      redisServer(),
      startIdentityProvider(),
    ]);
    [ann, bob] = [await idp.token({ sub: SUBJECT }), await idp.token({ sub: 'bob' })];
    [a, b] = [replica(), replica()];
    await Promise.all([a.start(), b.start()]);
  });
  afterAll(async () => {
    await store[Symbol.asyncDispose]();
    await idp.stop();
    await server[Symbol.asyncDispose]();
    await Promise.all([a.end(), b.end()]);
  });

  test('serve one legacy session while either is killed, and hold it to the same rules', async () => {
    const session = await begunAt(a, { token: ann });
    const atB = await goingOn(b.url, session, ann);
    expect((await atB.listTools()).tools.map(({ name }) => name)).toEqual(['hello']);
    expect(await atB.callTool({ name: 'hello' })).toMatchObject({ content: [{ text: 'hello' }] });
    await expect(atB.callTool({ name: 'hidden' })).rejects.toThrow('tool not found');
    await expect(atB.callTool({ name: 'forbidden' })).rejects.toThrow('Unauthorized');
    // What the tool list hides is not there, for nobody.
    await expect.poll(() => audited(b).map(([name]) => name), LONG).toEqual(['hello', 'forbidden']);
    expect(audited(b)).toContainEqual(['hello', 'success', SUBJECT]);
    await atB.close();
    await a.kill();
    await expect(fetch(a.url)).rejects.toThrow();
    expect(await statusOf(b.url, session, ann)).toBe(200);
    await a.start();
    expect(await statusOf(a.url, session, ann)).toBe(200);
    await b.kill();
    expect(await statusOf(a.url, session, ann)).toBe(200);
    await b.start();
    expect(await statusOf(b.url, session, ann)).toBe(200);
    const headers = { 'mcp-session-id': session, authorization: `Bearer ${ann}` };
    expect((await fetch(b.url, { method: 'DELETE', headers })).status).toBe(204);
    for (const { url } of [a, b])
      for (const message of [PING, undefined]) {
        const answer = await post(url, session, { token: ann, ...(message && { message }) });
        expect([answer.status, await answer.json()]).toMatchObject([404, { error: { code: -32001 } }]);
      }
  }, 120_000);

  test('hear that tools have changed where the client listens, also after it listened at the other', async () => {
    const session = await begunAt(a, { token: ann });
    for (const { url } of [a, b, a]) {
      const client = await goingOn(url, session, ann);
      // Official clients open their stream by this.
      await client.notification({ method: 'notifications/initialized' });
      await expectChangeHeard(client, server);
      await client.close();
    }
  }, 120_000);

  test('go on when the server forgets, and agree on what it calls the session then', async () => {
    const session = await begunAt(a, { token: ann });
    expect(await statusOf(b.url, session, ann)).toBe(200);
    server.forget();
    const urls = [a.url, b.url, a.url, b.url];
    expect(await Promise.all(urls.map((url) => statusOf(url, session, ann)))).toEqual([200, 200, 200, 200]);
    for (const url of urls) expect(await statusOf(url, session, ann)).toBe(200);
  });

  test('let nobody use the session of another, whichever was asked first, with Redis or without', async () => {
    const session = await begunAt(a, { token: ann });
    for (const { url } of [b, a]) expect(await statusOf(url, session, bob)).toBe(404);
    expect(await statusOf(b.url, session, ann)).toBe(200);
    for (const { url } of [b, a]) {
      const headers = { 'mcp-session-id': session, authorization: `Bearer ${bob}` };
      expect((await fetch(url, { method: 'DELETE', headers })).status).toBe(404);
      const listening = await fetch(url, { headers: { ...headers, accept: 'text/event-stream' } });
      expect(listening.status).toBe(404);
    }
    await store.kill();
    expect(await statusOf(b.url, session, bob)).toBe(404);
    expect(await statusOf(b.url, session, ann)).toBe(200);
    await store.start('lost');
    await expect.poll(() => statusOf(a.url, session, ann), LONG).toBe(200);
    expect(await statusOf(a.url, session, bob)).toBe(404);
  });

  test('put no session where others read', async () => {
    const session = await begunAt(a, { token: ann });
    await expect.poll(() => statusOf(b.url, session, ann), LONG).toBe(200);
    const dump = await store.dump();
    expect(dump).toContain('skep:session:');
    for (const word of [session, SUBJECT, 'clientInfo', 'abilities']) expect(dump).not.toContain(word);
  });
});
