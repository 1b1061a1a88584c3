import { readFileSync, statSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { npmRegistryWith, type NpmRegistry } from './fixtures/npm-registry.ts';
import { component, title } from './require.ts';
import { openUser, type TestUser } from './skep.ts';

// What is written down of the calls of a workload, by the packed program and for the official client.

const sandbox = await component('sandbox');
const PACKAGE = 'skep-test-audit';

/** Its one tool fails when it is told to; over HTTP where its environment says. */
const SERVER = `#!/usr/bin/env node
import http from 'node:http';
import { createInterface } from 'node:readline';
const answer = (text) => {
  const { id, method, params } = JSON.parse(text);
  const result = {
    initialize: { protocolVersion: params?.protocolVersion, capabilities: { tools: {} }, serverInfo: { name: 't', version: '1' } },
    'tools/list': { tools: [{ name: 'tell', inputSchema: { type: 'object' } }] },
    'tools/call': { content: [{ type: 'text', text: 'told' }] },
  }[method];
  const said = params?.arguments?.fail ? { error: { code: -32000, message: 'as asked' } } : { result };
  return id === undefined ? undefined : JSON.stringify({ jsonrpc: '2.0', id, ...said });
};
if (process.env.MCP_PORT === undefined)
  createInterface({ input: process.stdin }).on('line', (line) => {
    const said = answer(line);
    if (said !== undefined) process.stdout.write(said + '\\n');
  });
else
  http.createServer(async (request, response) => {
    if (request.method !== 'POST') return response.writeHead(405).end();
    let text = '';
    for await (const chunk of request) text += chunk;
    const said = answer(text);
    response.writeHead(said === undefined ? 202 : 200, { 'content-type': 'application/json' }).end(said);
  }).listen(Number(process.env.MCP_PORT), process.env.MCP_HOST);
`;

/** A command takes a while on a machine that others load. */
const SLOW = { timeout: 30_000 };

interface Event {
  readonly type: string;
  readonly outcome: string;
  readonly subjects: { readonly client_name?: string };
  readonly target: { readonly name?: string };
  readonly data?: object;
}

const eventsIn = (text: string): Event[] =>
  text
    .split('\n')
    .filter((line) => line.includes('"level":"AUDIT"'))
    .map((line) => JSON.parse(line));

describe.skipIf(!sandbox.available)(title('a workload that is audited', sandbox), () => {
  let registry: NpmRegistry;
  let user: TestUser;
  beforeAll(async () => {
    registry = await npmRegistryWith(PACKAGE, SERVER);
    user = openUser({ SKEP_RUNTIME: 'sandbox', npm_config_registry: registry.url });
  });
  afterAll(async () => {
    await user.end();
    await registry[Symbol.asyncDispose]();
  });

  async function run(name: string, ...args: readonly string[]): Promise<string> {
    const ran = await user.skep(['run', `npx://${PACKAGE}`, '--name', name, ...args]);
    expect(ran.code, ran.stderr).toBe(0);
    return ran.stdout.trim();
  }

  /** Two calls of the official client, of which one fails. */
  async function callTwice(url: string): Promise<void> {
    const client = new Client({ name: 'official', version: '1' });
    await client.connect(new StreamableHTTPClientTransport(new URL(url)));
    await client.callTool({ name: 'tell', arguments: { api_key: 'hunter2' } });
    await expect(client.callTool({ name: 'tell', arguments: { fail: true } })).rejects.toThrow('as asked');
    await client.close();
  }

  const CALLS = [
    ['mcp_tool_call', 'tell', 'success'],
    ['mcp_tool_call', 'tell', 'application_error'],
  ];
  const callsIn = (events: readonly Event[]) =>
    events
      .filter(({ type }) => type === 'mcp_tool_call')
      .map(({ type, target, outcome }) => [type, target.name, outcome]);

  test('tells in the log of its proxy what its clients did, and nothing of the check at its start', async () => {
    await callTwice(await run('plain', '--enable-audit'));
    await expect
      .poll(async () => callsIn(eventsIn((await user.skep(['logs', '--proxy', 'plain'])).stdout)), SLOW)
      .toEqual(CALLS);
    const events = eventsIn((await user.skep(['logs', '--proxy', 'plain'])).stdout);
    expect(events[0]).toMatchObject({ type: 'mcp_initialize', subjects: { client_name: 'official' } });
  }, 120_000);

  test('over HTTP, into a file of its own, over a stop and a start', async () => {
    const log = path.join(user.env['HOME'] ?? '', 'calls.log');
    const file = path.join(user.env['HOME'] ?? '', 'audit.yaml');
    writeFileSync(
      file,
      'logFile: calls.log\nincludeRequestData: true\neventTypes: [mcp_tool_call, mcp_initialize]\n',
    );
    const url = await run(
      'http',
      '--audit-config',
      file,
      '--transport',
      'streamable-http',
      '--target-port',
      '8124',
    );
    await callTwice(url);
    expect(await user.skep(['stop', 'http'])).toMatchObject({ code: 0 });
    expect(statSync(log).mode & 0o777).toBe(0o600);
    expect(await user.skep(['start', 'http'])).toMatchObject({ code: 0 });
    await callTwice(url);
    await expect.poll(() => callsIn(eventsIn(readFileSync(log, 'utf8'))), SLOW).toEqual([...CALLS, ...CALLS]);
    const text = readFileSync(log, 'utf8');
    // Of the official client alone: who started it asked for its tools, too.
    expect(eventsIn(text).filter(({ type }) => type === 'mcp_initialize')).toHaveLength(2);
    expect(text).toContain('[redacted]');
    expect(text).not.toContain('hunter2');
  }, 120_000);
});
