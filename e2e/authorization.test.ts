import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { SSEClientTransport } from '@modelcontextprotocol/sdk/client/sse.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { AUDIENCE, startIdentityProvider, type IdentityProvider } from './fixtures/identity-provider.ts';
import { npmRegistryWith, type NpmRegistry } from './fixtures/npm-registry.ts';
import { component, title } from './require.ts';
import { openUser, type TestUser } from './skep.ts';

// Policies decide what clients of a workload see and call; the official client asks, a real provider says who it is.

const sandbox = await component('sandbox');
const PACKAGE = 'skep-test-authorization';

/** Its tools tell their own names; over HTTP where its environment says. */
const SERVER = `#!/usr/bin/env node
import http from 'node:http';
import { createInterface } from 'node:readline';
const tools = ['look', 'change'].map((name) => ({
  name, inputSchema: { type: 'object' }, annotations: { readOnlyHint: name === 'look' },
}));
const answer = (text) => {
  const { id, method, params } = JSON.parse(text);
  const result = {
    initialize: { protocolVersion: params?.protocolVersion, capabilities: { tools: {} }, serverInfo: { name: 't', version: '1' } },
    'tools/list': { tools },
    'tools/call': { content: [{ type: 'text', text: params?.name ?? '' }] },
  }[method];
  return id === undefined ? undefined : JSON.stringify({ jsonrpc: '2.0', id, result });
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

const LOOK =
  'permit(principal, action, resource) when { resource has readOnlyHint && resource.readOnlyHint };';
const CHANGE = 'permit(principal in SkepGroup::"editors", action == Action::"call_tool", resource);';

describe.skipIf(!sandbox.available)(title('a workload with policies', sandbox), () => {
  let idp: IdentityProvider;
  let registry: NpmRegistry;
  let user: TestUser;
  let policies: string;
  beforeAll(async () => {
    idp = await startIdentityProvider();
    registry = await npmRegistryWith(PACKAGE, SERVER);
    user = openUser({ SKEP_RUNTIME: 'sandbox', npm_config_registry: registry.url });
    policies = path.join(user.dir, 'policies.yaml');
    const list = [LOOK, CHANGE].map((policy) => `    - '${policy}'\n`).join('');
    writeFileSync(policies, `version: "1.0"\ntype: cedarv1\ncedar:\n  policies:\n${list}`);
  });
  afterAll(async () => {
    await user.end();
    await registry[Symbol.asyncDispose]();
    await idp.stop();
  });

  const run = async (name: string, ...args: readonly string[]): Promise<string> => {
    const ran = await user.skep(['run', `npx://${PACKAGE}`, '--name', name, '--authz-config', policies, ...args]);
    expect(ran.code, ran.stderr).toBe(0);
    return ran.stdout.trim();
  }; // prettier-ignore

  /** What the official client sees, and what becomes of its calls. */
  async function seenAt(url: string, token?: string) {
    const headers: Record<string, string> = token === undefined ? {} : { authorization: `Bearer ${token}` };
    const client = new Client({ name: 'test', version: '1' });
    const at = new URL(url);
    const transport = at.pathname.endsWith('/sse')
      ? new SSEClientTransport(at)
      : new StreamableHTTPClientTransport(at, { requestInit: { headers } });
    await client.connect(transport);
    const tools = (await client.listTools()).tools.map(({ name }) => name);
    const called: string[] = [];
    for (const name of ['look', 'change'])
      called.push(
        await client.callTool({ name }).then(
          () => name,
          (error: unknown) => (String(error).includes('Unauthorized') ? 'refused' : String(error)),
        ),
      );
    await client.close();
    return { tools, called };
  }

  const READER = { tools: ['look'], called: ['look', 'refused'] };

  test('shows and lets call what they permit to whoever signed in', async () => {
    const url = await run('signed-in', '--oidc-issuer', idp.issuer, '--oidc-audience', AUDIENCE, '--oidc-insecure-allow-http', '--jwks-allow-private-ip'); // prettier-ignore
    expect(await seenAt(url, await idp.token({ sub: 'ann', groups: ['readers'] }))).toEqual(READER);
    expect(await seenAt(url, await idp.token({ sub: 'eve', groups: ['editors'] }))).toEqual({
      tools: ['look', 'change'],
      called: ['look', 'change'],
    });
  });

  test.each([
    ['HTTP', ['--transport', 'streamable-http', '--target-port', '8080']],
    ['HTTP with SSE towards clients', ['--proxy-mode', 'sse']],
  ])('works without signing in, over %s, after a stop and a start', async (_name, args) => {
    const name = `open-${String(args.at(-1))}`;
    const url = await run(name, ...args);
    expect(await seenAt(url)).toEqual(READER);
    await user.skep(['stop', name]);
    const again = await user.skep(['start', name]);
    expect(again.code, again.stderr).toBe(0);
    expect(await seenAt(url)).toEqual(READER);
  });

  test('does not start where a policy cannot be read', async () => {
    const file = path.join(user.dir, 'broken.json');
    writeFileSync(
      file,
      JSON.stringify({ version: '1.0', type: 'cedarv1', cedar: { policies: ['permit('] } }),
    );
    const ran = await user.skep(['run', `npx://${PACKAGE}`, '--name', 'broken', '--authz-config', file]);
    expect(ran.code).toBe(1);
    expect(ran.stderr).toContain('broken.json": policy 0: ');
  });
});
