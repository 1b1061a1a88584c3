import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, onTestFinished, test } from 'vitest';
import { scriptedHttpServer, type ScriptedHttpServer } from '@skep/proxy/doubles/scripted-http-server.ts';
import type { Script } from '@skep/proxy/doubles/scripted-server.ts';
import { commandUnderTest } from '../command-under-test.fixture.ts';

const SCHEMA = {
  type: 'object',
  properties: { text: { type: 'string' }, times: { type: 'integer' } },
  required: ['text'],
};
const TOOLS = [
  { name: 'say', description: 'Says\nit', inputSchema: SCHEMA },
  { name: 'fail', inputSchema: { type: 'object' } },
  { name: 'draw\u001b[31m', inputSchema: { type: 'object' } },
];

const script: Script = (message, { say, reply }) => {
  const { method, params = {}, id } = message;
  if (method === 'tools/list') {
    const second = params['cursor'] === 'more';
    reply(message, {
      tools: second ? TOOLS.slice(1) : TOOLS.slice(0, 1),
      ...(second ? {} : { nextCursor: 'more' }),
    });
  } else if (method === 'resources/list') reply(message, { resources: [{ uri: 'file:///a', name: 'a' }] });
  else if (method === 'prompts/list')
    say(JSON.stringify({ jsonrpc: '2.0', id, error: { code: -32_601, message: 'no prompts here' } }));
  else if (method === 'tools/call' && params['name'] === 'fail')
    reply(message, { isError: true, content: [{ type: 'text', text: 'disk full' }] });
  else if (method === 'tools/call')
    reply(message, {
      content: [
        { type: 'text', text: `${JSON.stringify(params['arguments'])}\u001b[2J` },
        { type: 'image', mimeType: 'image/png', data: 'AA==' },
      ],
    });
  else return undefined;
  return 'handled';
};

const endpointOf = ({ backend }: ScriptedHttpServer): string =>
  new URL(backend.kind === 'sse' ? '/sse' : '/mcp', backend.target).href;

describe.each(['http', 'sse'] as const)('a server that speaks %s', (kind) => {
  test('is asked what it offers, page by page', async () => {
    await using server = await scriptedHttpServer(kind, script);
    const skep = await commandUnderTest();
    const url = endpointOf(server);
    const table = await skep.output(`mcp list tools ${url}`);
    expect(table).toMatch(/^NAME +DESCRIPTION\nsay +Says it\nfail\ndraw\S*\n$/u);
    expect(table).not.toContain('\u001b');
    expect(JSON.parse(await skep.output(`mcp list tools ${url} --format json`))).toEqual(TOOLS);
    expect(await skep.output(`mcp list resources ${url}`)).toContain('file:///a');
    expect(await skep.refusal(`mcp list prompts ${url}`)).toContain('refused prompts/list: no prompts here');
    await expect.poll(() => server.sessions).toBe(0);
  });

  test('is called with arguments by name or as JSON', async () => {
    await using server = await scriptedHttpServer(kind, script);
    const skep = await commandUnderTest();
    const url = endpointOf(server);
    expect(await skep.output(`mcp call ${url} say text=5 times=2 other=x`)).toBe(
      '{"text":"5","times":2,"other":"x"}�[2J\n[image image/png]\n',
    );
    const all = { text: 'a=b', times: 1 };
    const json = ['mcp', 'call', url, 'say', JSON.stringify(all), '--format', 'json'];
    expect(JSON.parse(await skep.output(json))).toMatchObject({
      content: [{ text: `${JSON.stringify(all)}\u001b[2J` }, { type: 'image' }],
    });
  });

  test('that cannot do it is told of, and what can be done', async () => {
    await using server = await scriptedHttpServer(kind, script);
    const skep = await commandUnderTest();
    const url = endpointOf(server);
    expect(await skep.refusal(`mcp call ${url} fail`)).toContain('the tool "fail" failed: disk full');
    expect(await skep.refusal(`mcp call ${url} sya text=1`)).toContain('did you mean "say"?');
    expect(await skep.refusal(`mcp call ${url} nothing`)).toContain('it has say, fail, draw�[31m');
    expect(await skep.refusal(`mcp call ${url} say times=1`)).toContain('the tool needs text; add text=…');
    expect(await skep.refusal(`mcp call ${url} say text`)).toContain('neither NAME=VALUE nor a JSON object');
  });
});

test.each([
  ['mcp list things time', '"things" is none of tools, resources, prompts; skep mcp list tools time'],
  ['mcp list tools nobody', 'workload "nobody" not found'],
  ['mcp list tools http://127.0.0.1:1/mcp', 'does not answer as an MCP server; check the URL'],
  ['mcp list tools https://127.0.0.1:1/sse', 'does not answer as an MCP server; check the URL'],
  ['mcp list tools http://', 'is no URL'],
])('%s is refused', async (line, message) => {
  const skep = await commandUnderTest();
  expect(await skep.refusal(line)).toContain(message);
});

test('a workload that does not run, and one whose clients sign in, are named', async () => {
  const skep = await commandUnderTest();
  await skep.output(
    'run fake:1 --name a1 --transport stdio --oidc-issuer https://idp.example --oidc-audience x',
  );
  expect(await skep.refusal('mcp list tools a1')).toContain(
    'clients of "a1" sign in; give a token for it with --token-file FILE',
  );
  await skep.output('stop a1');
  expect(await skep.refusal('mcp list tools a1')).toContain('start it with skep start a1');
});

test('a server that lets nobody in is there, and says why', async () => {
  const body = '{"message":"only for \\u001b[31mstaff"}';
  const server = createServer(
    (req, res) => void req.resume().once('end', () => res.writeHead(403).end(body)),
  );
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  const skep = await commandUnderTest();
  for (const path of ['mcp', 'sse']) {
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/${path}`;
    const told = await skep.refusal(`mcp list tools ${url}`);
    expect(told).toContain(
      `"${url}" does not let you in: the server refused the request: only for �[31mstaff`,
    );
    expect(told).not.toContain('does not answer');
  }
});

describe('a token', () => {
  test('of a file is shown with every request, and ends up in nothing that is printed', async () => {
    await using server = await scriptedHttpServer('http', script);
    const skep = await commandUnderTest({ files: { token: ' hunter2.token \n' } });
    const url = endpointOf(server);
    await skep.output(`mcp call ${url} say text=1 --token-file token`);
    await skep.output(`mcp list tools ${url} --token-file token --debug`);
    const shown = server.headers.map(({ authorization }) => authorization);
    expect(new Set(shown)).toEqual(new Set(['Bearer hunter2.token']));
  });

  test('of the registry is shown to no server', async () => {
    await using server = await scriptedHttpServer('http', script);
    const skep = await commandUnderTest();
    const env = { SKEP_TOKEN_FILE: await skep.write('token', 'of-the-registry') };
    await skep.output(`mcp list tools ${endpointOf(server)}`, { env });
    const shown = server.headers.map(({ authorization }) => authorization);
    expect(new Set(shown)).toEqual(new Set([undefined]));
  });

  test.each([
    ['that is not there', 'nowhere', 'token file "WORK/nowhere" '],
    ['that is empty', 'empty', 'the token file "empty" is empty'],
    ['of another kind', 'words', 'the token file "words" holds no bearer token'],
  ])('in a file %s is refused before anybody is asked', async (_what, file, message) => {
    const skep = await commandUnderTest({ files: { empty: '\n', words: 'two words' } });
    expect(await skep.refusal(`mcp list tools http://127.0.0.1:1/mcp --token-file ${file}`)).toContain(
      message,
    );
  });

  test('leaves this machine in no clear text', async () => {
    const skep = await commandUnderTest({ files: { token: 'x' } });
    expect(await skep.refusal('mcp list tools http://mcp.example/mcp --token-file token')).toContain(
      'the token would travel to "mcp.example" unencrypted; give an https URL',
    );
  });

  test('that is wanted, or not taken, is told', async () => {
    await using server = await refusingServer(401);
    const skep = await commandUnderTest({ files: { token: 'x' } });
    const asked = `mcp list tools ${server.url}`;
    expect(await skep.refusal(asked)).toContain('wants to know who asks; give a token');
    expect(await skep.refusal(`${asked} --token-file token`)).toContain('does not take the token');
  });
});

test('a server that takes no calls now is told from what is no server', async () => {
  await using server = await refusingServer(503);
  const skep = await commandUnderTest();
  expect(await skep.refusal(`mcp list tools ${server.url}`)).toContain(
    'takes no calls now (503); try again in a few seconds',
  );
});

/** A server that takes nobody. */
async function refusingServer(status: number): Promise<AsyncDisposable & { readonly url: string }> {
  const server = createServer((_req, res) => res.writeHead(status).end());
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
