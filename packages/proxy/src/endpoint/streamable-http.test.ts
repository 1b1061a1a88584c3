import { describe, expect, test } from 'vitest';
import { manualClock } from '@skep/core/time/doubles/manual-clock.ts';
import { ask, openStream, postJson } from '../doubles/http-client.ts';
import { newSession, runningProxy } from '../doubles/running-proxy.ts';
import { scriptedServer, type Script } from '../doubles/scripted-server.ts';

const SSE = { Accept: 'text/event-stream' };
const BOTH = { Accept: 'application/json, text/event-stream', 'Content-Type': 'application/json' };
const silent: Script = ({ method }) => (method === 'tools/call' ? 'handled' : undefined);
const call = { jsonrpc: '2.0', id: 'c', method: 'tools/call', params: { _meta: { progressToken: 'p' } } };
const changed = '{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}';
const progress = (n: number): string =>
  `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":2,"progress":${n}}}`;

describe('GET and DELETE', () => {
  test.each([
    ['GET without a session', 'GET', SSE, 400],
    ['GET of an unknown session', 'GET', { ...SSE, 'Mcp-Session-Id': 'x' }, 404],
    ['GET of a modern client', 'GET', { ...SSE, 'MCP-Protocol-Version': '2026-07-28' }, 405],
    ['DELETE without a session', 'DELETE', {}, 400],
    ['DELETE of an unknown session', 'DELETE', { 'Mcp-Session-Id': 'x' }, 404],
    ['DELETE of a modern client', 'DELETE', { 'MCP-Protocol-Version': '2026-07-28' }, 405],
    ['PUT', 'PUT', {}, 405],
  ])('%s', async (...[, method, headers, status]) => {
    await using proxy = await runningProxy(scriptedServer());
    const answer = await ask(proxy.url, { method, headers });
    expect(answer.status).toBe(status);
    if (status === 404)
      expect(JSON.parse(answer.text)).toEqual({
        jsonrpc: '2.0',
        error: { code: -32001, message: 'Session not found' },
      });
    if (status === 405)
      expect(answer.headers.allow).toBe(method === 'PUT' ? 'GET, POST, DELETE, OPTIONS' : 'POST, OPTIONS');
  });

  test('GET that does not accept events is 406', async () => {
    await using proxy = await runningProxy(scriptedServer());
    const session = await newSession(proxy.url);
    expect(
      (await ask(proxy.url, { method: 'GET', headers: { Accept: 'application/json', ...session } })).status,
    ).toBe(406);
  });

  test('the stream begins with an empty event and carries what the server tells', async () => {
    const server = scriptedServer();
    await using proxy = await runningProxy(server);
    const session = await newSession(proxy.url);
    const stream = await openStream(proxy.url, { method: 'GET', headers: { ...SSE, ...session } });
    expect(stream.headers).toMatchObject({
      'content-type': 'text/event-stream',
      'cache-control': 'no-cache',
      'x-accel-buffering': 'no',
    });
    expect(await stream.next()).toMatchObject({ data: '', name: undefined });
    server.say(changed);
    expect(await stream.next()).toMatchObject({ name: 'message', data: changed });
    stream.abort();
  });

  test('clients of older revisions get no empty event', async () => {
    const server = scriptedServer();
    await using proxy = await runningProxy(server);
    await newSession(proxy.url);
    const session = await newSession(proxy.url, '2025-03-26');
    const stream = await openStream(proxy.url, { method: 'GET', headers: { ...SSE, ...session } });
    server.say(changed);
    expect((await stream.next())?.data).toBe(changed);
    stream.abort();
  });

  test('a newer GET takes over and the older stream ends cleanly', async () => {
    const server = scriptedServer();
    await using proxy = await runningProxy(server);
    const session = await newSession(proxy.url);
    const headers = { ...SSE, ...session };
    const older = await openStream(proxy.url, { method: 'GET', headers });
    await older.next();
    const newer = await openStream(proxy.url, { method: 'GET', headers });
    await newer.next();
    server.say(changed);
    expect((await newer.next())?.data).toBe(changed);
    expect(await older.next()).toBeUndefined();
    newer.abort();
  });

  test('DELETE ends the session, its stream and its calls', async () => {
    const server = scriptedServer(silent);
    await using proxy = await runningProxy(server);
    const session = await newSession(proxy.url);
    const stream = await openStream(proxy.url, { method: 'GET', headers: { ...SSE, ...session } });
    const pending = postJson(proxy.url, call, session);
    await server.heard(({ method }) => method === 'tools/call');
    expect((await ask(proxy.url, { method: 'DELETE', headers: session })).status).toBe(204);
    expect((await pending).text).toContain('Session not found');
    await stream.next();
    expect(await stream.next()).toBeUndefined();
    expect((await postJson(proxy.url, call, session)).status).toBe(404);
    expect(await server.heard(({ method }) => method === 'notifications/cancelled')).toBeDefined();
  });
});

describe('resuming a stream', () => {
  test('brings what was missed, and the pending answer, on the stream of that call only', async () => {
    const server = scriptedServer(silent);
    await using proxy = await runningProxy(server);
    const session = await newSession(proxy.url);
    const first = await openStream(proxy.url, {
      headers: { ...BOTH, ...session },
      body: JSON.stringify(call),
    });
    const begin = await first.next();
    expect(begin?.data).toBe('');
    const message = await server.heard(({ method }) => method === 'tools/call');
    server.say(progress(1));
    const seen = await first.next();
    first.abort();
    server.say(progress(2));
    server.say(changed);
    const second = await openStream(proxy.url, {
      method: 'GET',
      headers: { ...SSE, ...session, 'Last-Event-ID': seen?.id },
    });
    expect(JSON.parse((await second.next())?.data ?? '')).toMatchObject({
      params: { progressToken: 'p', progress: 2 },
    });
    server.reply(message, { late: true });
    expect(JSON.parse((await second.next())?.data ?? '')).toEqual({
      jsonrpc: '2.0',
      id: 'c',
      result: { late: true },
    });
    expect(await second.next()).toBeUndefined();

    const again = await ask(proxy.url, {
      method: 'GET',
      headers: { ...SSE, ...session, 'Last-Event-ID': begin?.id },
    });
    expect(again.text.match(/"progress":\d/gu)).toEqual(['"progress":1', '"progress":2']);
    expect(again.text).toContain('"late":true');
  });

  test.each(['nonsense', 'zz-5', '../1-1', '1-99999999999999999999'])(
    'from "%s" opens a fresh stream',
    async (id) => {
      const server = scriptedServer();
      await using proxy = await runningProxy(server);
      const session = await newSession(proxy.url);
      const stream = await openStream(proxy.url, {
        method: 'GET',
        headers: { ...SSE, ...session, 'Last-Event-ID': id },
      });
      await stream.next();
      server.say(changed);
      expect((await stream.next())?.data).toBe(changed);
      stream.abort();
    },
  );

  test('is no way into another session', async () => {
    const server = scriptedServer();
    await using proxy = await runningProxy(server);
    const [mine, theirs] = [await newSession(proxy.url), await newSession(proxy.url)];
    await postJson(proxy.url, { ...call, params: { secret: 'theirs' } }, { ...theirs, ...SSE });
    for (const id of ['2-0', '3-0', '1-0']) {
      const stream = await openStream(proxy.url, {
        method: 'GET',
        headers: { ...SSE, ...mine, 'Last-Event-ID': id },
      });
      expect((await stream.next())?.data).not.toContain('theirs');
      stream.abort();
    }
  });
});

describe('sessions', () => {
  test('expire when idle, and not while a stream is open', async () => {
    const clock = manualClock();
    const server = scriptedServer();
    await using proxy = await runningProxy(server, { clock, sessionTtlMs: 1_000 });
    const [idle, open] = [await newSession(proxy.url), await newSession(proxy.url)];
    const stream = await openStream(proxy.url, { method: 'GET', headers: { ...SSE, ...open } });
    await stream.next();
    clock.pass(1_600);
    expect((await postJson(proxy.url, call, idle)).status).toBe(404);
    expect((await postJson(proxy.url, call, open)).status).toBe(200);
    stream.abort();
  });

  test('are void after the backend was started anew, and the handshake is made again', async () => {
    const server = scriptedServer();
    await using proxy = await runningProxy(server);
    const before = await newSession(proxy.url);
    proxy.backendStarted();
    await expect.poll(() => server.attaches).toBe(2);
    expect((await postJson(proxy.url, call, before)).status).toBe(404);
    await newSession(proxy.url);
    expect(server.received.filter(({ method }) => method === 'initialize')).toHaveLength(2);
  });

  test('keep-alive comments flow on a call that takes long', async () => {
    const clock = manualClock();
    const server = scriptedServer(silent);
    await using proxy = await runningProxy(server, { clock });
    const session = await newSession(proxy.url);
    const pending = postJson(proxy.url, call, session);
    const message = await server.heard(({ method }) => method === 'tools/call');
    clock.pass(2_000);
    clock.pass(30_000);
    server.reply(message, {});
    const { text } = await pending;
    expect(text).toMatch(/^id: \S+\ndata:\n\n: keep-alive\n\nid: \S+\nevent: message\ndata: \{.*\}\n\n$/u);
  });
});

describe('a client that goes away during its call', () => {
  const cancelled = ({ method }: { readonly method?: string }): boolean =>
    method === 'notifications/cancelled';

  test.each(['application/json', 'text/event-stream'])(
    'without a session gives its place free, and the server hears of it (%s)',
    async (accept) => {
      const server = scriptedServer(silent);
      await using proxy = await runningProxy(server);
      const leaving = new AbortController();
      const pending = fetch(proxy.url, {
        method: 'POST',
        headers: { ...BOTH, Accept: accept },
        body: JSON.stringify(call),
        signal: leaving.signal,
      });
      const message = await server.heard(({ method }) => method === 'tools/call');
      leaving.abort();
      await Promise.allSettled([pending]);
      expect(await server.heard(cancelled)).toMatchObject({ params: { requestId: message.id } });
    },
  );

  test('with a session can fetch the answer later', async () => {
    const server = scriptedServer(silent);
    await using proxy = await runningProxy(server);
    const session = await newSession(proxy.url);
    const first = await openStream(proxy.url, {
      headers: { ...BOTH, ...session },
      body: JSON.stringify(call),
    });
    const begin = await first.next();
    const message = await server.heard(({ method }) => method === 'tools/call');
    first.abort();
    server.reply(message, { kept: true });
    await postJson(proxy.url, { jsonrpc: '2.0', id: 'after', method: 'x/echo' }, session);
    const resumed = await ask(proxy.url, {
      method: 'GET',
      headers: { ...SSE, ...session, 'Last-Event-ID': begin?.id },
    });
    expect(resumed.text).toContain('"kept":true');
    expect(server.received.some(cancelled)).toBe(false);
  });
});

describe('failures of the server during a call', () => {
  test.each([
    ['as JSON', 'application/json', 504, 502],
    ['on the stream', 'text/event-stream', 200, 200],
  ])('%s', async (...[, accept, late, lost]) => {
    const clock = manualClock();
    const server = scriptedServer(silent);
    await using proxy = await runningProxy(server, { clock });
    const session = await newSession(proxy.url);
    const slow = postJson(proxy.url, call, { ...session, Accept: accept });
    await server.heard(({ id }) => id === 2);
    clock.pass(60_000);
    expect(await slow).toMatchObject({
      status: late,
      text: expect.stringContaining('{"jsonrpc":"2.0","id":"c","error":{"code":-32000,"message":"Timeout"}}'),
    });
    const broken = postJson(proxy.url, call, { ...session, Accept: accept });
    await server.heard(({ id }) => id === 3);
    server.crash();
    expect(await broken).toMatchObject({
      status: lost,
      text: expect.stringContaining(
        '{"jsonrpc":"2.0","id":"c","error":{"code":-32603,"message":"the server stopped before it had answered; see skep logs"}}',
      ),
    });
  });
});
