import { once } from 'node:events';
import { createServer, type RequestListener, type Server } from 'node:http';
import { text } from 'node:stream/consumers';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { Step } from '../../call/chain.ts';
import { manualClock } from '@skep/core/time/doubles/manual-clock.ts';
import { messagesIn, postJson } from '../../doubles/http-client.ts';
import { askModern, modernRequest } from '../../doubles/modern.ts';
import { newSession, runningProxy } from '../../doubles/running-proxy.ts';
import { INITIALIZED } from '../../doubles/scripted-server.ts';
import type { HttpBackend } from '../backend.ts';

/** A process of a server: it knows its own sessions alone, and counts the calls that it was sent. */
function newProcess(calls: string[], answers: 'answers' | 'breaks' = 'answers'): RequestListener {
  const own = new Set<unknown>();
  return (req, res) => {
    void text(req).then((line) => {
      if (req.method !== 'POST') return res.writeHead(405).end();
      const { id, method, params } = JSON.parse(line);
      const key = method === 'initialize' ? `${own.size}-${Math.random()}` : req.headers['mcp-session-id'];
      if (method === 'initialize') own.add(key);
      if (!own.has(key)) return res.writeHead(404).end();
      if (id === undefined) return res.writeHead(202).end();
      if (method === 'tools/call') calls.push(params.name);
      if (method === 'tools/call' && answers === 'breaks') return req.socket.destroy();
      const result = method === 'initialize' ? INITIALIZED : { echo: params };
      res.writeHead(200, { 'Content-Type': 'application/json', 'Mcp-Session-Id': String(key) });
      return res.end(JSON.stringify({ jsonrpc: '2.0', id, result }));
    });
  };
}

async function listening(server: Server, port = 0): Promise<HttpBackend> {
  server.listen(port, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  return {
    kind: 'http',
    target: new URL(`http://127.0.0.1:${typeof address === 'object' ? address?.port : 0}`),
  };
}

async function end(server: Server): Promise<void> {
  server.closeAllConnections();
  await new Promise<void>((resolve) => server.close(() => resolve()));
}

const inside: Step = (_call, next) => next();
const call = (name: string): object => ({ jsonrpc: '2.0', id: name, method: 'tools/call', params: { name } });

describe.each([
  ['relayed', {}],
  ['where a step looks inside', { steps: { authorization: inside } }],
])('a server of HTTP that is started anew, %s', (_how, options) => {
  test('is dialled again, and calls of before and meanwhile are answered once, in the same session', async () => {
    const calls: string[] = [];
    const first = createServer(newProcess(calls));
    const backend = await listening(first);
    const second = createServer(newProcess(calls));
    onTestFinished(() => end(second));
    // The new process listens while the proxy waits for it.
    let starting: Promise<unknown> | undefined;
    const sleep = async (): Promise<void> => {
      await (starting ??= listening(second, Number(backend.target.port)));
      // As time passes, the broken connection is cleared up.
      await nextTurn();
      await nextTurn();
    };
    const clock = { ...manualClock(), sleep };
    await using proxy = await runningProxy({ backend }, { ...options, clock });
    const session = await newSession(proxy.url);
    expect((await postJson(proxy.url, call('before'), session)).status).toBe(200);
    await end(first);
    const answers = await Promise.all(
      ['a', 'b', 'c'].map((name) => postJson(proxy.url, call(name), session)),
    );
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200]);
    expect((await postJson(proxy.url, call('after'), session)).status).toBe(200);
    expect(calls.toSorted()).toEqual(['a', 'after', 'b', 'before', 'c']);
  });

  test('whose connection broke is not sent a call twice', async () => {
    const calls: string[] = [];
    const server = createServer(newProcess(calls, 'breaks'));
    const backend = await listening(server);
    onTestFinished(() => end(server));
    await using proxy = await runningProxy({ backend }, { ...options, clock: manualClock() });
    const session = await newSession(proxy.url);
    const answer = await postJson(proxy.url, call('once'), { ...session, Accept: 'application/json' });
    expect(answer.status).toBe(502);
    expect(calls).toEqual(['once']);
  });

  test('that never was there is not waited for', async () => {
    const server = createServer();
    const backend = await listening(server);
    await end(server);
    const clock = manualClock();
    await using proxy = await runningProxy({ backend }, { ...options, clock });
    const answer = await postJson(proxy.url, call('x'), { Accept: 'application/json' });
    expect([answer.status, clock.slept]).toEqual([502, []]);
  });
});

/** What became of so many calls of modern clients at once. */
async function modernAtOnce(url: string, names: readonly string[]): Promise<readonly unknown[]> {
  const answers = await Promise.all(
    names.map((name) => askModern(url, modernRequest('tools/call', { name }, {}, name))),
  );
  return answers.map((answer) =>
    answer.status === 200 ? Object(messagesIn(answer).at(-1)).result?.echo.name : answer.status,
  );
}

describe.each([
  ['relayed', {}],
  ['where a step looks inside', { steps: { authorization: inside } }],
])('a legacy server with sessions, %s', (_how, options) => {
  test('answers modern clients that come at once, also when it was started anew meanwhile', async () => {
    const calls: string[] = [];
    const first = createServer(newProcess(calls));
    const backend = await listening(first);
    const second = createServer(newProcess(calls));
    onTestFinished(() => end(second));
    await using proxy = await runningProxy({ backend }, options);
    const names = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'];
    expect(await modernAtOnce(proxy.url, names)).toEqual(names);
    await end(first);
    proxy.backendEnded();
    const [meanwhile] = await modernAtOnce(proxy.url, ['x']);
    expect(meanwhile).toBe(503);
    proxy.backendStarted();
    const later = modernAtOnce(proxy.url, names);
    await listening(second, Number(backend.target.port));
    expect(await later).toEqual(names);
    expect(calls).toHaveLength(16);
  });

  test('that ends while modern clients meet it has them come again', async () => {
    const met = Promise.withResolvers<void>();
    const silent = createServer((req) => void req.resume().once('end', () => met.resolve()));
    const backend = await listening(silent);
    onTestFinished(() => end(silent));
    await using proxy = await runningProxy({ backend }, options);
    const asked = modernAtOnce(proxy.url, ['a', 'b']);
    await met.promise;
    proxy.backendEnded();
    expect(await asked).toEqual([503, 503]);
  });
});
