import {
  Client as ModernClient,
  StreamableHTTPClientTransport as ModernHttp,
} from '@modelcontextprotocol/client';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { redisServer, type RedisServer } from './fixtures/redis-server.ts';
import { Replica, statusOf } from './fixtures/replica.ts';
import { roundRobin } from './fixtures/round-robin.ts';
import { expectChangeHeard, sessionServer, type SessionServer } from './fixtures/session-server.ts';
import { conformanceOverHttp, modernCommand } from './fixtures/spawned-server.ts';
import { component, title } from './require.ts';

// Official clients that know one address, behind which each of their requests reaches another replica than the one before.

const redis = await component('redis');

async function replicas(args: readonly string[], store?: RedisServer): Promise<readonly [Replica, Replica]> {
  const made = [new Replica(args, store), new Replica(args, store)] as const;
  onTestFinished(async () => void (await Promise.all(made.map((one) => one.end()))));
  await Promise.all(made.map((one) => one.start()));
  return made;
}

describe.skipIf(!redis.available)(title('a legacy client before two replicas', redis), () => {
  let server: SessionServer;
  let store: RedisServer;
  beforeAll(async () => {
    [server, store] = await Promise.all([sessionServer(['hello', 'ask']), redisServer()]);
  });
  afterAll(async () => {
    await store[Symbol.asyncDispose]();
    await server[Symbol.asyncDispose]();
  });

  test.each([
    ['relay', []],
    ['read', ['--tools', 'hello,ask']],
  ])(
    'that %s calls, is asked, hears of changes and ends its session, whichever takes which',
    async (_, args) => {
      const [a, b] = await replicas([server.url, ...args], store);
      await using front = await roundRobin(() => [a.url, b.url]);
      const client = new Client({ name: 'test', version: '1' }, { capabilities: { elicitation: {} } });
      client.setRequestHandler(ElicitRequestSchema, () => ({ action: 'accept', content: { name: 'Ada' } }));
      const transport = new StreamableHTTPClientTransport(new URL(front.url));
      await client.connect(transport);
      for (let times = 0; times < 5; times += 1) {
        expect((await client.listTools()).tools.map(({ name }) => name)).toEqual(['hello', 'ask']);
        expect(await client.callTool({ name: 'hello' })).toMatchObject({ content: [{ text: 'hello' }] });
        // The question comes over one replica; its answer is another request.
        expect(await client.callTool({ name: 'ask' })).toMatchObject({ content: [{ text: 'Ada' }] });
      }
      await expectChangeHeard(client, server);
      await a.kill();
      for (let times = 0; times < 3; times += 1)
        expect(await client.callTool({ name: 'hello' })).toMatchObject({ content: [{ text: 'hello' }] });
      expect(front.counts.every((count) => count > 5)).toBe(true);
      const session = transport.sessionId ?? '';
      await transport.terminateSession();
      await client.close();
      await a.start();
      for (const { url } of [a, b]) expect(await statusOf(url, session)).toBe(404);
    },
    120_000,
  );
});

describe('a modern client before two replicas that share nothing', () => {
  test.each([
    ['relay', []],
    ['read', ['--tools', 'test_simple_text,test_input_required_result_elicitation']],
  ])(
    'and %s is served by either, and asked over either, while one is killed',
    async (_, args) => {
      using server = await conformanceOverHttp(modernCommand('http'));
      const [a, b] = await replicas([server.url, ...args]);
      await using front = await roundRobin(() => [a.url, b.url]);
      const client = new ModernClient(
        { name: 'test', version: '1' },
        { capabilities: { elicitation: {} }, versionNegotiation: { mode: { pin: '2026-07-28' } } },
      );
      client.setRequestHandler('elicitation/create', () => ({ action: 'accept', content: { name: 'Ada' } }));
      await client.connect(new ModernHttp(new URL(front.url)));
      const calls = async (): Promise<void> => {
        expect((await client.listTools()).tools.map(({ name }) => name)).toContain('test_simple_text');
        expect(await client.callTool({ name: 'test_simple_text', arguments: {} })).toMatchObject({
          content: [{ type: 'text' }],
        });
        const asked = await client.callTool({
          name: 'test_input_required_result_elicitation',
          arguments: {},
        });
        expect(JSON.stringify(asked.content)).toContain('Ada');
      };
      for (let times = 0; times < 3; times += 1) await calls();
      expect(front.counts.every((count) => count > 3)).toBe(true);
      await a.kill();
      await calls();
      await client.close();
    },
    120_000,
  );
});
