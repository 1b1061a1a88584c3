import { expect, test } from 'vitest';
import { manualClock } from '@skep/core/time/doubles/manual-clock.ts';
import { postJson } from '../doubles/http-client.ts';
import { runningProxy, type RunningProxy } from '../doubles/running-proxy.ts';
import { scriptedHttpServer } from '../doubles/scripted-http-server.ts';
import { scriptedServer } from '../doubles/scripted-server.ts';
import type { RateLimitSettings } from './rate-limit.ts';

const call = (name: string): object => ({ jsonrpc: '2.0', id: 'x', method: 'tools/call', params: { name } });

/** The statuses of calls of these tools, in order. */
async function statuses(proxy: RunningProxy, ...names: readonly string[]): Promise<number[]> {
  const found: number[] = [];
  for (const name of names) found.push((await postJson(proxy.url, call(name))).status);
  return found;
}

async function limited(rateLimit: RateLimitSettings) {
  const clock = manualClock();
  const server = scriptedServer();
  return { clock, server, proxy: await runningProxy(server, { clock, parts: { rateLimit } }) };
}

test('so many calls at once, and one more for each part of the period', async () => {
  const { proxy, clock, server } = await limited({ shared: { maxTokens: 2, refillMs: 10_000 } });
  await using _proxy = proxy;
  expect(await statuses(proxy, 'a', 'b', 'a')).toEqual([200, 200, 429]);
  const refused = await postJson(proxy.url, call('a'));
  expect(refused.headers['retry-after']).toBe('5');
  expect(JSON.parse(refused.text)).toEqual({
    jsonrpc: '2.0',
    id: 'x',
    error: { code: 429, message: 'Rate limit exceeded', data: { retryAfterSeconds: 5 } },
  });
  clock.pass(4_000);
  expect(await statuses(proxy, 'a')).toEqual([429]);
  clock.pass(1_000);
  expect(await statuses(proxy, 'a', 'a')).toEqual([200, 429]);
  clock.pass(60 * 60_000);
  expect(await statuses(proxy, 'a', 'a', 'a')).toEqual([200, 200, 429]);
  expect(server.received.filter(({ method }) => method === 'tools/call')).toHaveLength(5);
});

test('what is no call of a tool is not counted', async () => {
  const { proxy } = await limited({ shared: { maxTokens: 1, refillMs: 1_000 } });
  await using _proxy = proxy;
  for (const method of ['tools/list', 'x/y', 'resources/read'])
    expect((await postJson(proxy.url, { jsonrpc: '2.0', id: 1, method })).status).toBe(200);
  expect(await statuses(proxy, 'a', 'a')).toEqual([200, 429]);
});

test('a tool has its own limit beside that of all, and a call that is refused takes from neither', async () => {
  const { proxy } = await limited({
    shared: { maxTokens: 3, refillMs: 60_000 },
    tools: [{ name: 'dear', perUser: { maxTokens: 1, refillMs: 60_000 } }],
  });
  await using _proxy = proxy;
  expect(await statuses(proxy, 'dear', 'dear', 'dear', 'a', 'a', 'a')).toEqual([
    200, 429, 429, 200, 200, 429,
  ]);
});

test('holds in front of a server whose bytes are relayed, too', async () => {
  await using server = await scriptedHttpServer('http');
  await using proxy = await runningProxy(server, {
    parts: { rateLimit: { perUser: { maxTokens: 1, refillMs: 60_000 } } },
  });
  const { headers } = await postJson(proxy.url, { jsonrpc: '2.0', id: 1, method: 'initialize', params: {} });
  const session = { 'Mcp-Session-Id': String(headers['mcp-session-id']) };
  expect((await postJson(proxy.url, call('a'), session)).status).toBe(200);
  expect((await postJson(proxy.url, call('a'), session)).status).toBe(429);
});
