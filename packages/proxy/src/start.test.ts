import { Agent, request } from 'node:http';
import { connect } from 'node:net';
import { describe, expect, test } from 'vitest';
import { ask, openStream, postJson } from './doubles/http-client.ts';
import { newSession, runningProxy, SETTINGS } from './doubles/running-proxy.ts';
import { scriptedServer, type Script } from './doubles/scripted-server.ts';
import { manualClock } from '@skep/core/time/doubles/manual-clock.ts';
import { startProxy } from './start.ts';

const silent: Script = ({ method }) => (method === 'tools/call' ? 'handled' : undefined);
const JSON_TYPE = { 'Content-Type': 'application/json' };
const call = { jsonrpc: '2.0', id: 1, method: 'tools/call' };

describe('starting', () => {
  test('a busy port is named', async () => {
    await using first = await runningProxy(scriptedServer());
    await expect(
      startProxy({ ...SETTINGS, backend: scriptedServer().backend, port: first.port }),
    ).rejects.toMatchObject({
      code: 'proxy/port-busy',
      message: expect.stringContaining(`"${first.port}"`),
    });
  });

  test('an address of another machine cannot be had', async () => {
    const options = { ...SETTINGS, backend: scriptedServer().backend, host: '192.0.2.1' };
    await expect(startProxy(options)).rejects.toMatchObject({ code: 'proxy/listen-failed' });
  });

  test('a backend that cannot be attached fails the start with its own error', async () => {
    const server = scriptedServer();
    server.failAttach(new TypeError('no container'));
    await expect(runningProxy(server)).rejects.toThrow('no container');
  });

  test('an IPv6 address is bracketed in the URL', async () => {
    await using proxy = await runningProxy(scriptedServer(), { host: '::1' });
    expect(proxy.url).toBe(`http://[::1]:${proxy.port}/mcp`);
    await newSession(proxy.url);
  });
});

describe('beside the chain', () => {
  test('/health tells the state of the pipe', async () => {
    const clock = manualClock();
    const server = scriptedServer();
    await using proxy = await runningProxy(server, { clock });
    const health = async () => {
      const { status, text } = await ask(`${proxy.origin}/health?x=1`, { method: 'GET' });
      return [status, JSON.parse(text)];
    };
    expect(await health()).toEqual([
      200,
      {
        status: 'healthy',
        timestamp: '2026-01-01T00:00:00.000Z',
        transport: 'streamable-http',
        mcp: { available: true, last_checked: '2026-01-01T00:00:00.000Z' },
      },
    ]);
    server.failAttach(...Array.from({ length: 10 }, () => new Error('gone')));
    server.crash();
    await expect.poll(async () => (await health())[1].status).toBe('degraded');
    for (let tries = 2; tries <= 11; tries += 1) {
      clock.pass(30_000);
      await expect.poll(() => server.attaches).toBe(tries);
    }
    await expect.poll(async () => (await health())[0]).toBe(503);
    expect((await health())[1]).toMatchObject({ status: 'unhealthy', mcp: { available: false } });
    proxy.backendStarted();
    await expect.poll(async () => (await health())[0]).toBe(200);
  });

  test.each([
    ['POST', '/health', 405, 'Method Not Allowed'],
    ['GET', '/metrics', 404, 'Not Found'],
    ['GET', '/.well-known/oauth-protected-resource', 404, '{"error":"not_found"}'],
    ['GET', '/.well-known/oauth-protected-resource-x', 404, '{"error":"not_found"}'],
    ['GET', '/other', 404, 'Not Found'],
    ['POST', '/mcp/', 404, 'Not Found'],
  ])('%s %s', async (...[method, path, status, text]) => {
    await using proxy = await runningProxy(scriptedServer());
    const body = method === 'POST' ? JSON.stringify(call) : undefined;
    expect(await ask(proxy.origin + path, { method, ...(body === undefined ? {} : { body }) })).toMatchObject(
      { status, text },
    );
  });
});

describe('closing', () => {
  test('ends listening streams at once, lets a call in flight finish and takes no new ones', async () => {
    const server = scriptedServer(silent);
    await using proxy = await runningProxy(server, { graceMs: 10_000 });
    const session = await newSession(proxy.url);
    const stream = await openStream(proxy.url, {
      method: 'GET',
      headers: { Accept: 'text/event-stream', ...session },
    });
    await stream.next();
    const pending = postJson(proxy.url, call, session);
    const message = await server.heard(({ method }) => method === 'tools/call');
    const closing = proxy.close();
    expect(await stream.next()).toBeUndefined();
    await expect(postJson(proxy.url, call)).rejects.toThrow('ECONNREFUSED');
    server.reply(message, { finished: true });
    expect((await pending).text).toContain('"finished":true');
    await closing;
    await proxy.close();
  });

  test('does not wait for a connection that a client keeps open after its answer', async () => {
    const server = scriptedServer(silent);
    await using proxy = await runningProxy(server, { graceMs: 60_000 });
    const agent = new Agent({ keepAlive: true });
    const answered = Promise.withResolvers<void>();
    const outgoing = request(proxy.url, { method: 'POST', agent, headers: JSON_TYPE }, (reply) => {
      reply.resume().once('end', () => answered.resolve());
    });
    outgoing.end(JSON.stringify(call));
    const message = await server.heard(({ method }) => method === 'tools/call');
    const closing = proxy.close();
    server.reply(message, {});
    await answered.promise;
    await closing;
    agent.destroy();
  });

  test('cuts what is left when the grace is over', async () => {
    const clock = manualClock();
    const server = scriptedServer(silent);
    await using proxy = await runningProxy(server, { clock, graceMs: 5_000 });
    const pending = postJson(proxy.url, call, { Accept: 'application/json' });
    await server.heard(({ method }) => method === 'tools/call');
    const closing = proxy.close();
    clock.pass(5_000);
    expect((await Promise.allSettled([pending]))[0]).toMatchObject({ status: expect.anything() });
    await closing;
  });
});

test('hundreds of connections that never finish their request keep nobody else out', async () => {
  await using proxy = await runningProxy(scriptedServer());
  const head = `POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:${proxy.port}\r\nContent-Le`;
  const sockets = Array.from({ length: 500 }, () => connect(proxy.port, '127.0.0.1').on('error', () => {}));
  try {
    await Promise.all(sockets.map((one) => new Promise<void>((resolve) => one.write(head, () => resolve()))));
    await newSession(proxy.url);
  } finally {
    for (const one of sockets) one.destroy();
  }
});

test('a client that vanishes in the middle of its body hurts nobody', async () => {
  await using proxy = await runningProxy(scriptedServer());
  const socket = connect(proxy.port, '127.0.0.1');
  const head = `POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:${proxy.port}\r\nContent-Length: 100\r\n\r\n{"json`;
  await new Promise<void>((resolve) => socket.write(head, () => resolve()));
  socket.destroy();
  await newSession(proxy.url);
});

test('a reader that does not read is cut off instead of filling memory', async () => {
  const server = scriptedServer();
  await using proxy = await runningProxy(server);
  const session = await newSession(proxy.url);
  const socket = connect(proxy.port, '127.0.0.1');
  const head = `GET /mcp HTTP/1.1\r\nHost: 127.0.0.1:${proxy.port}\r\nAccept: text/event-stream\r\nMcp-Session-Id: ${session['Mcp-Session-Id']}\r\n\r\n`;
  await new Promise<void>((resolve) => socket.write(head, () => resolve()));
  await new Promise<void>((resolve) => socket.once('readable', () => resolve()));
  const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()));
  const big = `{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{"x":"${'x'.repeat(1_000_000)}"}}`;
  for (let n = 0; n < 40; n += 1) server.say(big);
  await newSession(proxy.url);
  socket.on('error', () => {}).resume();
  await closed;
});

test('a reader that falls behind misses old progress, never the newest, and never the answer', async () => {
  const server = scriptedServer(silent);
  await using proxy = await runningProxy(server);
  const body = JSON.stringify({ ...call, params: { _meta: { progressToken: 't' } } });
  const socket = connect(proxy.port, '127.0.0.1');
  const head = `POST /mcp HTTP/1.0\r\nHost: 127.0.0.1:${proxy.port}\r\nAccept: text/event-stream\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n`;
  socket.write(head + body);
  const message = await server.heard(({ method }) => method === 'tools/call');
  const last = 3_000;
  for (let progress = 1; progress <= last; progress += 1) {
    const params = { progressToken: 1, progress, message: 'x'.repeat(10_000) };
    server.say(JSON.stringify({ jsonrpc: '2.0', method: 'notifications/progress', params }));
  }
  server.reply(message, { answered: true });
  await expect.poll(() => ask(`${proxy.origin}/health`, { method: 'GET' })).toMatchObject({ status: 200 });
  let text = '';
  for await (const chunk of socket.setEncoding('utf8')) text += String(chunk);
  const heard = [...text.matchAll(/"progress":(\d+)/gu)].map(([, n]) => Number(n));
  expect(heard.length).toBeLessThan(last);
  expect(heard).toEqual(heard.toSorted((a, b) => a - b));
  expect(heard.at(-1)).toBe(last);
  expect(text.trimEnd().endsWith('"result":{"answered":true}}')).toBe(true);
});

test('a body far over the limit is answered, not just cut', async () => {
  await using proxy = await runningProxy(scriptedServer());
  const answer = await ask(proxy.url, { body: Buffer.alloc(20 * 1024 * 1024, 0x20), headers: {} });
  expect([answer.status, answer.text]).toEqual([413, 'Request Entity Too Large']);
});
