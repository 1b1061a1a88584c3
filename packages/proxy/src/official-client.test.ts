import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { expect, test } from 'vitest';
import { runningProxy } from './doubles/running-proxy.ts';
import { scriptedServer, type Script } from './doubles/scripted-server.ts';

type Options = NonNullable<ConstructorParameters<typeof Client>[1]>;

const tools: Script = (message, server) => {
  if (message.method === 'tools/list') {
    server.reply(message, { tools: [{ name: 'greet', inputSchema: { type: 'object' } }] });
    return 'handled';
  }
  if (message.method !== 'tools/call') return undefined;
  server.reply(message, { content: [{ type: 'text', text: 'hello' }] });
  return 'handled';
};

const connected = async (url: string, options: Options): Promise<Client> => {
  const client = new Client({ name: 'test', version: '1' }, options);
  await client.connect(new StreamableHTTPClientTransport(new URL(url)));
  return client;
};

test.each([
  ['as it comes', {}, 0],
  ['asking for the newest revision first', { versionNegotiation: { mode: 'auto' } }, 1],
] satisfies [string, Options, number][])(
  'the official client connects %s, lists and calls',
  async (_how, options, discoveries) => {
    const server = scriptedServer(tools);
    await using proxy = await runningProxy(server);
    const client = await connected(proxy.url, options);
    expect((await client.listTools()).tools.map(({ name }) => name)).toEqual(['greet']);
    expect(await client.callTool({ name: 'greet' })).toMatchObject({ content: [{ text: 'hello' }] });
    await client.close();
    expect(server.received.filter(({ method }) => method === 'initialize')).toHaveLength(1);
    expect(server.received.filter(({ method }) => method === 'server/discover')).toHaveLength(discoveries);
  },
);

test('a client that insists on the modern revision uses a legacy server', async () => {
  const server = scriptedServer(tools);
  await using proxy = await runningProxy(server);
  const client = await connected(proxy.url, { versionNegotiation: { mode: { pin: '2026-07-28' } } });
  expect(client.getServerVersion()).toMatchObject({ name: 'scripted' });
  expect((await client.listTools()).tools.map(({ name }) => name)).toEqual(['greet']);
  expect(await client.callTool({ name: 'greet' })).toMatchObject({ content: [{ text: 'hello' }] });
  await client.close();
});

test('two official clients at once get their own answers', async () => {
  const server = scriptedServer((message, { reply }) => {
    if (message.method !== 'tools/call') return undefined;
    reply(message, { content: [{ type: 'text', text: String(message.params?.['name']) }] });
    return 'handled';
  });
  await using proxy = await runningProxy(server);
  const clients = await Promise.all([connected(proxy.url, {}), connected(proxy.url, {})]);
  const answers = await Promise.all(
    clients.flatMap((client, at) => [0, 1, 2].map((n) => client.callTool({ name: `${at}-${n}` }))),
  );
  expect(answers.map(({ content }) => Reflect.get(Object(content[0]), 'text'))).toEqual(
    [0, 1].flatMap((at) => [0, 1, 2].map((n) => `${at}-${n}`)),
  );
  await Promise.all(clients.map((client) => client.close()));
});
