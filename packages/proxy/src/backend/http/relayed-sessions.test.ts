import { manualClock } from '@skep/core/time/doubles/manual-clock.ts';
import { expect, test } from 'vitest';
import { newSession, runningProxy } from '../../doubles/running-proxy.ts';
import { postJson } from '../../doubles/http-client.ts';
import { scriptedHttpServer } from '../../doubles/scripted-http-server.ts';
import { RelayedSessions } from './relayed-sessions.ts';
import { Upstream } from './upstream.ts';

test('a session is begun anew with what its client shows now', async () => {
  await using server = await scriptedHttpServer('http');
  await using proxy = await runningProxy(server);
  const session = await newSession(proxy.url);
  server.forget();
  const before = server.headers.length;
  const call = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'x' } };
  const shown = { ...session, Authorization: 'Bearer now', 'MCP-Protocol-Version': '2025-11-25' };
  expect((await postJson(proxy.url, call, shown)).status).toBe(200);
  // The call that is not known, the handshake, and the call again.
  const [, opening] = server.headers.slice(before);
  expect(opening).toMatchObject({ authorization: 'Bearer now', 'content-type': 'application/json' });
  expect(opening).not.toHaveProperty('mcp-session-id');
  expect(opening).not.toHaveProperty('mcp-protocol-version');
});

test('how a session began is forgotten when nobody has asked after it for as long as it lives', () => {
  const clock = manualClock();
  const sessions = new RelayedSessions(new Upstream({}, clock), { clock, sessionTtlMs: 1_000 });
  const opening = { url: new URL('http://127.0.0.1/'), body: '{}' };
  for (const id of ['a', 'b']) sessions.begun(id, { opening, principal: undefined });
  clock.pass(900);
  expect(sessions.has('a')).toBe(true);
  clock.pass(900);
  expect([sessions.has('a'), sessions.has('b')]).toEqual([true, false]);
  clock.pass(1_001);
  expect(sessions.has('a')).toBe(false);
});
