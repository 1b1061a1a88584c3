import { describe, expect, test } from 'vitest';
import { manualClock } from '@skep/core/time/doubles/manual-clock.ts';
import { ask as askHttp, postJson } from '../../doubles/http-client.ts';
import { initializeRequest, newSession, runningProxy } from '../../doubles/running-proxy.ts';
import { scriptedServer, type Received, type ScriptedServer } from '../../doubles/scripted-server.ts';
import { call, notice, request, result, started } from '../../doubles/started-mux.ts';
import { CARRIED_CAPABILITIES } from '../../message/client-abilities.ts';
import type { Response } from '../../message/json-rpc.ts';
import { Handshake } from './handshake.ts';
import { InFlight, type Flight } from './in-flight.ts';
import { oneOff, SELF, type Newcomer } from '../port.ts';

const isInitialize = ({ method }: Received): boolean => method === 'initialize';
const isInitialized = ({ method }: Received): boolean => method === 'notifications/initialized';

/** A server that refuses every revision but the oldest. */
const knowsOldRevision = (): ScriptedServer =>
  scriptedServer((message, { say }) => {
    if (!isInitialize(message) || message.params?.['protocolVersion'] === '2024-11-05') return undefined;
    say(JSON.stringify({ jsonrpc: '2.0', id: message.id, error: { code: -32602, message: 'version' } }));
    return 'handled';
  });

describe('the handshake ahead of any client', () => {
  test('declares everything that can be carried, in the newest revision, and is the only one', async () => {
    const server = scriptedServer();
    await using proxy = await runningProxy(server, { skepVersion: '9.9.9' });
    expect(await proxy.greet?.()).toMatchObject({ serverInfo: { name: 'scripted', version: '1.0.0' } });
    await newSession(proxy.url, '2025-06-18');
    expect(server.received.filter(isInitialize)).toMatchObject([
      {
        params: {
          protocolVersion: '2025-11-25',
          capabilities: CARRIED_CAPABILITIES,
          clientInfo: { name: 'skep', version: '9.9.9' },
        },
      },
    ]);
  });

  test('is not announced before a client is there, so that what the server asks then finds it', async () => {
    const { server, mux, join, ask } = await started();
    await mux.greet();
    await ask(join('a'), request(1, 'x/first')).done;
    expect(server.received.some(isInitialized)).toBe(false);
    await ask(oneOff(), call(1)).done;
    await ask(oneOff(), call(2)).done;
    expect(server.received.map(({ method }) => method)).toEqual([
      'initialize',
      'x/first',
      'notifications/initialized',
      'tools/call',
      'tools/call',
    ]);
  });

  test('is announced for a question of the proxy, and once, however many clients come', async () => {
    const { server, mux, join } = await started();
    await mux.greet();
    expect(JSON.parse(await mux.ask('tools/list', {}))).toMatchObject({ result: { echo: {} } });
    await mux.ask('tools/list', { cursor: 'a' });
    mux.notify(join('a'), notice('notifications/initialized'));
    mux.notify(join('b'), notice('notifications/initialized'));
    await mux.ask('x/last', {});
    expect(server.received.map(({ method }) => method)).toEqual([
      'initialize',
      'notifications/initialized',
      'tools/list',
      'tools/list',
      'x/last',
    ]);
  });

  test('is announced once more by the first client, where the server asked before anybody could answer', async () => {
    const { server, mux, join } = await started(({ method }, { say }) => {
      if (method === 'notifications/initialized') say('{"jsonrpc":"2.0","id":"r","method":"roots/list"}');
      return undefined;
    });
    await mux.greet();
    await mux.ask('tools/list', {});
    await server.heard(({ id, error }) => id === 'r' && error !== undefined);
    const first = join('a');
    mux.notify(first, notice('notifications/initialized'));
    await mux.ask('x/last', {});
    mux.notify(join('b'), notice('notifications/initialized'));
    await mux.ask('x/last', {});
    expect(server.received.filter(isInitialized)).toHaveLength(2);
    expect(first.heard.map(({ method }) => method)).toEqual(['roots/list']);
  });

  test('a question of the proxy fails when the server ends, and nothing of it is left', async () => {
    const { server, mux } = await started((message) =>
      message.method === 'tools/list' ? 'handled' : undefined,
    );
    await mux.greet();
    const asked = mux.ask('tools/list', {});
    await server.heard(({ method }) => method === 'tools/list');
    server.crash();
    await expect(asked).rejects.toMatchObject({ code: 'proxy/backend-lost' });
    expect(mux.waiting).toBe(0);
  });

  test('gives a client the revision that it asked for, not the one of the check', async () => {
    await using proxy = await runningProxy(scriptedServer());
    await proxy.greet?.();
    const answer = await postJson(proxy.url, initializeRequest(7, '2025-03-26'));
    expect(answer.text).toContain('"protocolVersion":"2025-03-26"');
  });

  test('is made in the revision of the client when the server refused the newest', async () => {
    await using proxy = await runningProxy(knowsOldRevision());
    expect(await proxy.greet?.()).toBeUndefined();
    expect((await postJson(proxy.url, initializeRequest(7, '2024-11-05'))).status).toBe(200);
    expect((await newSession(proxy.url))['Mcp-Session-Id']).toBeDefined();
  });

  test('is repeated at once for a client that waits with an older revision', async () => {
    await using proxy = await runningProxy(knowsOldRevision());
    expect((await postJson(proxy.url, initializeRequest(7, '2024-11-05'))).text).toContain('2024-11-05');
  });

  test('is made with the server that takes the place of one that ended', async () => {
    const server = scriptedServer();
    await using proxy = await runningProxy(server);
    await proxy.greet?.();
    proxy.backendEnded();
    proxy.backendStarted();
    await expect.poll(() => server.received.filter(isInitialize).length).toBe(2);
    expect((await postJson(proxy.url, { jsonrpc: '2.0', id: 1, method: 'tools/call' })).status).toBe(200);
    await server.heard(isInitialized);
  });

  test('is announced by the next client when the server could not be told', () => {
    const handshake = new Handshake((_request, waiter) => waiter.finish(result(0)), '1');
    handshake.join({ id: '1', wanted: undefined, welcome: () => undefined, refuse() {}, fail() {} });
    const told = [false, true, true].map((written) => {
      let asked = false;
      const outcome = handshake.announce(() => ((asked = true), written));
      return [asked, outcome];
    });
    expect(told).toEqual([
      [true, false],
      [true, true],
      [false, true],
    ]);
  });

  test('has a minute, however short the patience with calls is', () => {
    const clock = manualClock();
    const expired: string[] = [];
    const onExpired = ({ request: { method } }: Flight): void => void expired.push(method);
    const inFlight = new InFlight({ clock, timeoutMs: 1_000, onExpired });
    const waiter = { carries: false, send() {}, finish() {}, fail() {} };
    for (const method of ['initialize', 'tools/call'])
      inFlight.add(SELF, { id: '0', method }, waiter, undefined);
    clock.pass(59_000);
    expect(expired).toEqual(['tools/call']);
    clock.pass(1_000);
    expect(expired).toEqual(['tools/call', 'initialize']);
  });

  test('fails at once when the server ends instead of answering', async () => {
    const { server, mux } = await started((message) => (isInitialize(message) ? 'handled' : undefined));
    const greeting = mux.greet();
    await server.heard(isInitialize);
    server.crash();
    await expect(greeting).rejects.toMatchObject({ code: 'proxy/backend-lost' });
  });
});

describe('a server that answers the handshake with much, or never', () => {
  const answering = (result: object) =>
    scriptedServer((message, { reply }) => {
      if (!isInitialize(message)) return undefined;
      reply(message, result);
      return 'handled';
    });
  const info = { protocolVersion: '2025-11-25', serverInfo: { name: 'large', version: '1' } };
  const newcomer = (fail: Newcomer['fail'], welcome: Newcomer['welcome'] = () => undefined): Newcomer => ({
    id: '1',
    wanted: undefined,
    welcome,
    refuse() {},
    fail,
  });

  test('its large result is not parsed again for every client', async () => {
    const instructions = 'x'.repeat(500_000);
    const { mux } = await started(undefined, undefined, answering({ ...info, instructions }));
    expect(await mux.greet()).toMatchObject(info);
    const reply = await new Promise<Response>((resolve) => {
      mux.initialize(
        newcomer(
          () => {},
          (answer) => {
            resolve(answer);
            return undefined;
          },
        ),
      );
    });
    expect(reply.text).toContain(instructions);
    expect(reply.value['result']).toEqual(info);
  });

  test('a result beyond reason is refused', async () => {
    await using proxy = await runningProxy(answering({ ...info, x: '['.repeat(2 * 1024 * 1024) }));
    expect((await postJson(proxy.url, initializeRequest())).text).toContain('Bad gateway');
    await expect(proxy.greet?.()).rejects.toMatchObject({ code: 'proxy/bad-gateway' });
  });

  test('clients that went away do not take the places of others', async () => {
    const { mux } = await started((message) => (isInitialize(message) ? 'handled' : undefined));
    const failed: string[] = [];
    const all = Array.from({ length: 1024 }, () => newcomer((code) => void failed.push(code)));
    const leave = all.map((one) => mux.initialize(one));
    mux.initialize(newcomer((code) => void failed.push(code)));
    expect(failed.splice(0)).toEqual(['proxy/busy']);
    for (const left of leave) left();
    mux.initialize(newcomer((code) => void failed.push(code)));
    expect(failed).toEqual([]);
    mux.ended();
    expect(failed).toEqual(['proxy/backend-lost']);
  });
});

describe('between a crash and the restart', () => {
  test('initialize is not answered out of the handshake of the dead server', async () => {
    const server = scriptedServer();
    await using proxy = await runningProxy(server);
    const session = await newSession(proxy.url);
    server.failAttach(...Array.from({ length: 10 }, () => new Error('gone')));
    server.crash();
    const message = { jsonrpc: '2.0', id: 1, method: 'tools/call' };
    for (const attempt of [
      () => postJson(proxy.url, initializeRequest()),
      () => postJson(proxy.url, message, session),
      () => postJson(proxy.url, message),
    ]) {
      await expect.poll(async () => (await attempt()).status).toBe(503);
      const { headers, text } = await attempt();
      expect(headers['retry-after']).toBe('5');
      expect(JSON.parse(text)).toMatchObject({
        id: 1,
        error: { message: 'the server stopped and is being restarted; see skep logs' },
      });
    }
  });

  test('nothing is tried at a process that is known to have ended, and its handshake is forgotten', async () => {
    const server = scriptedServer();
    await using proxy = await runningProxy(server);
    const before = await newSession(proxy.url);
    proxy.backendEnded();
    expect((await postJson(proxy.url, initializeRequest())).status).toBe(503);
    expect(server.attaches).toBe(1);
    proxy.backendStarted();
    await expect.poll(() => server.attaches).toBe(2);
    const get = { method: 'GET', headers: { Accept: 'text/event-stream', ...before } };
    expect((await askHttp(proxy.url, get)).status).toBe(404);
    await newSession(proxy.url);
    expect(server.received.filter(isInitialize)).toHaveLength(2);
  });
});

describe('what a client did not declare', () => {
  const sample = '{"jsonrpc":"2.0","id":"srv-1","method":"sampling/createMessage","params":{}}';
  const isAnswer = ({ id }: Received): boolean => id === 'srv-1';

  test.each([true, false])('it is never asked for; the server hears so (listening: %s)', async (listens) => {
    const { server, join } = await started();
    const client = join('poor', listens);
    client.abilities = new Set(['roots']);
    server.say(sample);
    expect(await server.heard(isAnswer)).toMatchObject({
      error: { code: -32601, message: expect.stringContaining('did not declare sampling') },
    });
    expect(client.heard).toEqual([]);
  });

  test('is told by the session of the call, whatever other clients can do', async () => {
    const { server, join, ask } = await started(({ method }) =>
      method === 'tools/call' ? 'handled' : undefined,
    );
    const poor = join('poor');
    poor.abilities = new Set();
    const rich = join('rich');
    const outcome = ask(poor, call(1));
    await server.heard(({ method }) => method === 'tools/call');
    server.say(sample);
    expect(await server.heard(isAnswer)).toMatchObject({ error: { code: -32601 } });
    expect([...outcome.before, ...poor.heard, ...rich.heard]).toEqual([]);
  });
});
