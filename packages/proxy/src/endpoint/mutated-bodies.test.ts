import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { edited } from '@skep/core/json/edited-text.fixture.ts';
import { postJson } from '../doubles/http-client.ts';
import { newSession, runningProxy } from '../doubles/running-proxy.ts';
import { scriptedServer } from '../doubles/scripted-server.ts';

const CALL = {
  jsonrpc: '2.0',
  id: 1,
  method: 'tools/call',
  params: { name: 'echo', arguments: { text: 'é', n: 1.5 }, _meta: { progressToken: 't' } },
};
const BODIES = [
  CALL,
  { ...CALL, id: 'x', method: 'resources/subscribe', params: { uri: 'f:/x' } },
  { ...CALL, method: 'logging/setLevel', params: { level: 'info' } },
  { ...CALL, method: 'initialize', params: { protocolVersion: '2025-06-18', capabilities: {} } },
  { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 1 } },
  { jsonrpc: '2.0', id: 1, result: {} },
  { jsonrpc: '2.0', id: 1, error: { code: 1, message: 'x' } },
].map((body) => JSON.stringify(body));
const mutated = edited(fc.constantFrom(...BODIES), 4);

test('a mutated body is answered, never with a fault of ours, and the next client is served', async () => {
  const server = scriptedServer();
  await using proxy = await runningProxy(server);
  const session = await newSession(proxy.url);
  await fc.assert(
    fc.asyncProperty(mutated, fc.boolean(), async (body, within) => {
      const { status } = await postJson(proxy.url, body, within ? session : {});
      expect([200, 202, 400, 404]).toContain(status);
    }),
    { numRuns: 400 },
  );
  for (const line of server.lines) expect(() => JSON.parse(line)).not.toThrow();
  expect((await postJson(proxy.url, CALL, session)).text).toContain('"echo"');
});
