import { once } from 'node:events';
import { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import { localIdentity } from '@skep/auth/token/identity.ts';
import { manualClock } from '@skep/core/time/doubles/manual-clock.ts';
import { describe, expect, test } from 'vitest';
import { newCall } from './call/call.ts';
import type { OptionalSteps, Step } from './call/chain.ts';
import { WatchedCall, type CallEnd } from './call/watch-call.ts';
import { postJson } from './doubles/http-client.ts';
import { askModern, modernRequest } from './doubles/modern.ts';
import { newSession, runningProxy } from './doubles/running-proxy.ts';
import { scriptedHttpServer } from './doubles/scripted-http-server.ts';
import { INITIALIZED, scriptedServer, type Script } from './doubles/scripted-server.ts';
import { readMessage } from './message/json-rpc.ts';
import { authorization } from './steps/authorization.ts';

/** Leaves as soon as `entered` says so. */
async function leave(url: string, init: RequestInit, entered: Promise<void>): Promise<void> {
  const leaving = new AbortController();
  const left = fetch(url, { method: 'POST', ...init, signal: leaving.signal }).then(
    () => false,
    () => true,
  );
  await entered;
  leaving.abort();
  expect(await left).toBe(true);
}

describe('a client that has gone', () => {
  test.each([
    ['stdio', () => scriptedServer()],
    ['http', () => scriptedHttpServer('http')],
  ] as const)('while the steps were at work has its server asked for nothing: %s', async (_kind, open) => {
    await using stack = new AsyncDisposableStack();
    const server = await open();
    if (Symbol.asyncDispose in server) stack.use(server);
    const entered = Promise.withResolvers<void>();
    const through = Promise.withResolvers<void>();
    const slow: Step = async (call, next) => {
      if (call.req.headers['x-slow'] === undefined) return next();
      const closed = once(call.res, 'close');
      entered.resolve();
      await closed;
      await next();
      return through.resolve();
    };
    const proxy = stack.use(await runningProxy(server, { steps: { 'rate-limit': slow } }));
    const session = await newSession(proxy.url);
    const call = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'x' } };
    const headers = {
      ...session,
      'X-Slow': '1',
      'Content-Type': 'application/json',
      Accept: 'application/json, text/event-stream',
    };
    await leave(proxy.url, { headers, body: JSON.stringify(call) }, entered.promise);
    await through.promise;
    await postJson(proxy.url, { ...call, params: { name: 'y' } }, session);
    const called = server.received.filter(({ method }) => method === 'tools/call');
    expect(called.map(({ params }) => params?.['name'])).toEqual(['y']);
  });

  test('while its server was met has it asked for nothing', async () => {
    const met = Promise.withResolvers<() => void>();
    const script: Script = (message, { reply }) => {
      if (message.method === 'tools/call') return undefined;
      const isFirst = server.received.length === 1;
      met.resolve(() => reply(message, message.method === 'initialize' ? INITIALIZED : { echo: null }));
      return isFirst ? 'handled' : undefined;
    };
    await using server = await scriptedHttpServer('http', script);
    const closed = Promise.withResolvers<void>();
    const watching: OptionalSteps = {
      'rate-limit': (call, next) => {
        call.res.once('close', () => closed.resolve());
        return next();
      },
    };
    await using proxy = await runningProxy(server, { steps: watching });
    const { body, headers } = modernRequest('tools/call', { name: 'x' });
    const all = {
      ...headers,
      'Content-Type': 'application/json',
      Accept: 'application/json, text/event-stream',
    };
    const entered = met.promise.then(() => {});
    await leave(proxy.url, { headers: all, body }, entered);
    await closed.promise;
    (await met.promise)();
    expect((await askModern(proxy.url, modernRequest('tools/call', { name: 'y' }))).status).toBe(200);
    const called = server.received.filter(({ method }) => method === 'tools/call');
    expect(called.map(({ params }) => params?.['name'])).toEqual(['y']);
  });

  test('before its call was watched is told of all the same', () => {
    const req = Object.assign(new IncomingMessage(new Socket()), { method: 'POST' });
    const res = new ServerResponse(req);
    res.destroy();
    const call = newCall(req, res, { authority: undefined, target: '/mcp' });
    const ends: CallEnd[] = [];
    new WatchedCall(call, manualClock()).settle(call, (end) => void ends.push(end));
    expect(ends).toMatchObject([{ status: undefined, answer: undefined }]);
  });

  test('while it was decided what it hears of has no more decided', async () => {
    const req = Object.assign(new IncomingMessage(new Socket()), { method: 'POST' });
    const res = new ServerResponse(req);
    const call = newCall(req, res, { authority: undefined, target: '/mcp' });
    const resourceSubscriptions = Array.from({ length: 1_000 }, (_, at) => `x:${at}`);
    const { body } = modernRequest('subscriptions/listen', { notifications: { resourceSubscriptions } });
    const message = readMessage(body);
    if (typeof message === 'string') throw new TypeError(message);
    call.incoming = { message, era: 'modern' };
    call.identity = localIdentity('al', 0);
    let decided = 0;
    const decide = async (): Promise<boolean> => {
      decided += 1;
      await Promise.resolve();
      res.destroy();
      return true;
    };
    await authorization({ decideFor: () => decide }, manualClock())(call, () => Promise.resolve());
    expect(decided).toBeLessThan(20);
  });
});
