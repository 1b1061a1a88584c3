import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { manualClock } from '@skep/core/time/doubles/manual-clock.ts';
import { describe, expect, test } from 'vitest';
import { ask, openStream, postJson } from '../../doubles/http-client.ts';
import { askModern, modernRequest, modernScript, nextOf, streamOf } from '../../doubles/modern.ts';
import { initializeRequest, newSession, runningProxy } from '../../doubles/running-proxy.ts';
import { scriptedHttpServer } from '../../doubles/scripted-http-server.ts';
import type { Script } from '../../doubles/scripted-server.ts';

const TIMEOUT_MS = 5_000;
const call = { jsonrpc: '2.0', id: 'ä', method: 'tools/call', params: { name: 'x' } };
const late = { jsonrpc: '2.0', id: 'ä', error: { code: -32000, message: 'Timeout' } };

/** Answers everything but these methods. */
const silentTo =
  (...methods: readonly string[]): Script =>
  ({ method = '' }) =>
    methods.includes(method) ? 'handled' : undefined;

describe('a server of HTTP that never answers', () => {
  test('a call has its client told after the time limit, and the server', async () => {
    await using server = await scriptedHttpServer('http', silentTo('tools/call'));
    const clock = manualClock();
    await using proxy = await runningProxy(server, { requestTimeoutMs: TIMEOUT_MS, clock });
    const session = await newSession(proxy.url);
    const asked = postJson(proxy.url, call, session);
    await server.heard(({ method }) => method === 'tools/call');
    clock.pass(TIMEOUT_MS);
    const answer = await asked;
    expect([answer.status, JSON.parse(answer.text)]).toEqual([504, late]);
    const told = await server.heard(({ method }) => method === 'notifications/cancelled');
    expect(told.params).toMatchObject({ requestId: 'ä' });
    expect(server.headers.at(-1)).toMatchObject({ 'mcp-session-id': session['Mcp-Session-Id'] });
    const health = await ask(`${proxy.origin}/health`, { method: 'GET' });
    expect(JSON.parse(health.text)).toMatchObject({ status: 'healthy', mcp: { available: true } });
  });

  test('a call has its client told, too, while a forgotten session is begun anew', async () => {
    let isSilent = false;
    const script: Script = ({ method }) => (isSilent && method === 'initialize' ? 'handled' : undefined);
    await using server = await scriptedHttpServer('http', script);
    const clock = manualClock();
    await using proxy = await runningProxy(server, { requestTimeoutMs: TIMEOUT_MS, clock });
    const session = await newSession(proxy.url);
    server.forget();
    isSilent = true;
    const before = server.received.length;
    const asked = postJson(proxy.url, call, session);
    await expect
      .poll(() => server.received.slice(before).map(({ method }) => method))
      .toContain('initialize');
    clock.pass(TIMEOUT_MS);
    const answer = await asked;
    expect([answer.status, JSON.parse(answer.text)]).toEqual([504, late]);
  });

  test('a call without a session has its client told alone', async () => {
    await using server = await scriptedHttpServer('http', modernScript(silentTo('tools/call')));
    const clock = manualClock();
    await using proxy = await runningProxy(server, { requestTimeoutMs: TIMEOUT_MS, clock });
    const asked = askModern(proxy.url, modernRequest('tools/call', { name: 'x' }, {}, 'ä'));
    await server.heard(({ method }) => method === 'tools/call');
    clock.pass(TIMEOUT_MS);
    const answer = await asked;
    expect([answer.status, JSON.parse(answer.text)]).toEqual([504, late]);
    expect((await askModern(proxy.url, modernRequest('tools/list'))).status).toBe(200);
    expect(server.received.map(({ method }) => method)).not.toContain('notifications/cancelled');
  });

  test('a handshake may take a minute, and is not cancelled', async () => {
    await using server = await scriptedHttpServer('http', silentTo('initialize'));
    const clock = manualClock();
    await using proxy = await runningProxy(server, { requestTimeoutMs: TIMEOUT_MS, clock });
    const asked = postJson(proxy.url, initializeRequest());
    await server.heard(({ method }) => method === 'initialize');
    clock.pass(59_999);
    expect(clock.nextIn).toBe(1);
    clock.pass(1);
    expect((await asked).status).toBe(504);
    expect(server.received.map(({ method }) => method)).toEqual(['initialize']);
  });
});

test.each([400, 404])('a refusal (%i) that does not end has its client told, too', async (status) => {
  const server = createServer((_req, res) => void res.writeHead(status).write('{"jsonrpc":')).listen(
    0,
    '127.0.0.1',
  );
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const backend = { kind: 'http', target: new URL(`http://127.0.0.1:${port}`) } as const;
  const clock = manualClock();
  await using proxy = await runningProxy({ backend }, { requestTimeoutMs: TIMEOUT_MS, clock });
  const asked = postJson(proxy.url, initializeRequest());
  // The limit of the handshake itself is over with the head of its answer.
  await expect.poll(() => clock.nextIn, { timeout: 20_000 }).toBe(TIMEOUT_MS);
  clock.pass(TIMEOUT_MS);
  const answer = await asked;
  expect([answer.status, JSON.parse(answer.text)]).toMatchObject([504, { error: late.error }]);
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
});

describe('a server of HTTP takes its time', () => {
  test('once it has begun to answer', async () => {
    const script: Script = (message, { say }) => {
      if (message.method !== 'tools/call') return undefined;
      say('{"jsonrpc":"2.0","method":"notifications/message","params":{}}');
      return 'handled';
    };
    await using server = await scriptedHttpServer('http', script);
    const clock = manualClock();
    await using proxy = await runningProxy(server, { requestTimeoutMs: TIMEOUT_MS, clock });
    const session = await newSession(proxy.url);
    const stream = await openStream(proxy.url, {
      body: JSON.stringify(call),
      headers: { 'Content-Type': 'application/json', Accept: 'text/event-stream', ...session },
    });
    await stream.next();
    clock.pass(10 * TIMEOUT_MS);
    server.say('{"jsonrpc":"2.0","id":"ä","result":{}}');
    expect(await nextOf(stream)).toMatchObject({ id: 'ä', result: {} });
  });

  test('to say something to who listens', async () => {
    await using server = await scriptedHttpServer('http', modernScript(silentTo('subscriptions/listen')));
    const clock = manualClock();
    await using proxy = await runningProxy(server, { requestTimeoutMs: TIMEOUT_MS, clock });
    const listening = streamOf(proxy.url, modernRequest('subscriptions/listen', { notifications: {} }));
    await server.heard(({ method }) => method === 'subscriptions/listen');
    clock.pass(10 * TIMEOUT_MS);
    server.say('{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{}}');
    const stream = await listening;
    expect(await nextOf(stream)).toMatchObject({ method: 'notifications/subscriptions/acknowledged' });
    stream.abort();
  });
});
