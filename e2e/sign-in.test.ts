import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  AUDIENCE,
  EXCHANGER,
  startIdentityProvider,
  type IdentityProvider,
} from './fixtures/identity-provider.ts';
import { npmRegistryWith, type NpmRegistry } from './fixtures/npm-registry.ts';
import { component, title } from './require.ts';
import { openUser, type TestUser } from './skep.ts';

// Clients of a workload sign in at a real identity provider; the official client calls.

const sandbox = await component('sandbox');
const PACKAGE = 'skep-test-sign-in';

/** Its one tool tells the headers it was asked with and the variables it has; over HTTP where its environment says. */
const TELLING_SERVER = `#!/usr/bin/env node
import http from 'node:http';
import { createInterface } from 'node:readline';
const answer = (text, headers) => {
  const { id, method, params } = JSON.parse(text);
  const told = JSON.stringify({ headers, env: process.env });
  const result = {
    initialize: { protocolVersion: params?.protocolVersion, capabilities: { tools: {} }, serverInfo: { name: 't', version: '1' } },
    'tools/list': { tools: [{ name: 'tell', inputSchema: { type: 'object' } }] },
    'tools/call': { content: [{ type: 'text', text: told }] },
  }[method];
  return id === undefined ? undefined : JSON.stringify({ jsonrpc: '2.0', id, result });
};
if (process.env.MCP_PORT === undefined)
  createInterface({ input: process.stdin }).on('line', (line) => {
    const said = answer(line, {});
    if (said !== undefined) process.stdout.write(said + '\\n');
  });
else
  http.createServer(async (request, response) => {
    if (request.method !== 'POST') return response.writeHead(405).end();
    let text = '';
    for await (const chunk of request) text += chunk;
    const said = answer(text, request.headers);
    response.writeHead(said === undefined ? 202 : 200, { 'content-type': 'application/json' }).end(said);
  }).listen(Number(process.env.MCP_PORT), process.env.MCP_HOST);
`;

describe.skipIf(!sandbox.available)(title('a workload whose clients sign in', sandbox), () => {
  let idp: IdentityProvider;
  let registry: NpmRegistry;
  let user: TestUser;
  beforeAll(async () => {
    idp = await startIdentityProvider();
    registry = await npmRegistryWith(PACKAGE, TELLING_SERVER);
    user = openUser({ SKEP_RUNTIME: 'sandbox', npm_config_registry: registry.url });
  });
  afterAll(async () => {
    await user.end();
    await registry[Symbol.asyncDispose]();
    await idp.stop();
  });

  const LOCAL = ['--oidc-insecure-allow-http', '--jwks-allow-private-ip'];
  const run = (name: string, ...args: readonly string[]) =>
    user.skep(['run', `npx://${PACKAGE}`, '--name', name, ...args]);
  const urlOf = ({ code, stdout, stderr }: Awaited<ReturnType<typeof run>>): string => {
    expect(code, stderr).toBe(0);
    return stdout.trim();
  };

  interface Told {
    readonly headers: Readonly<Record<string, string>>;
    readonly env: Readonly<Record<string, string>>;
  }

  /** What the server tells the official client. */
  async function callWith(url: string, token?: string): Promise<Told> {
    const headers: Record<string, string> = token === undefined ? {} : { authorization: `Bearer ${token}` };
    const client = new Client({ name: 'test', version: '1' });
    await client.connect(new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers } }));
    const { content } = (await client.callTool({ name: 'tell' })) as { content: { text: string }[] };
    await client.close();
    return JSON.parse(content[0]?.text ?? '') as Told;
  }

  /** A bare ping with the token: status, challenge and body. */
  async function refusalOf(url: string, token?: string) {
    const response = await fetch(url, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
        ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
      },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'ping' }),
    });
    const text = await response.text();
    return { status: response.status, challenge: response.headers.get('www-authenticate'), text };
  }

  test('is asked by hand with a token of a file, which no argument holds', async () => {
    urlOf(await run('byhand', '--oidc-issuer', idp.issuer, '--oidc-audience', AUDIENCE, ...LOCAL));
    const file = (name: string, token: string): string => {
      writeFileSync(path.join(user.dir, name), `${token}\n`, { mode: 0o600 });
      return path.join(user.dir, name);
    };
    const good = file('good-token', await idp.token({ sub: 'alice' }));
    const called = await user.skep(['mcp', 'call', 'byhand', 'tell', '--token-file', good]);
    expect(called.code, called.stderr).toBe(0);
    expect((JSON.parse(called.stdout) as Told).headers).not.toHaveProperty('authorization');
    const listed = await user.skep(['mcp', 'list', 'tools', 'byhand', '--token-file', good]);
    expect(listed.stdout, listed.stderr).toContain('tell');
    const other = file('other-token', await idp.token({ sub: 'alice' }, { audience: 'another' }));
    expect(await user.skep(['mcp', 'list', 'tools', 'byhand'])).toMatchObject({ code: 1 });
    const refused = await user.skep(['mcp', 'list', 'tools', 'byhand', '--token-file', other]);
    expect(refused.stderr).toContain('"byhand" does not take the token');
  });

  test('admits tokens of its issuer alone, over a rotation of its keys, a stop and a start', async () => {
    const resource = 'https://mcp.example/mcp';
    const ran = await run('jwt', '--oidc-issuer', idp.issuer, '--oidc-audience', AUDIENCE, '--resource-url', resource, ...LOCAL); // prettier-ignore
    const url = urlOf(ran);
    const first = await idp.token({ sub: 'alice' });
    await callWith(url, first);

    const metadata = 'https://mcp.example/.well-known/oauth-protected-resource/mcp';
    const missing = await refusalOf(url);
    expect(missing).toMatchObject({ status: 401 });
    expect(missing.challenge).toBe(`Bearer realm="${idp.issuer}", resource_metadata="${metadata}"`);
    const document = await fetch(new URL('/.well-known/oauth-protected-resource/mcp', url));
    expect(await document.json()).toMatchObject({ resource, authorization_servers: [idp.issuer] });

    const now = Math.floor(Date.now() / 1_000);
    const refusals: [token: string, why: string][] = [
      [await idp.sign({ sub: 'a', exp: now - 1 }), 'the token has expired'],
      [await idp.token({ sub: 'a' }, { audience: 'another' }), 'the token is for another audience'],
      [await idp.sign({ sub: 'a', exp: now + 60, iss: 'https://evil.example' }), 'another issuer'],
      [await idp.token({ sub: 'a' }, { format: 'opaque' }), 'the bearer token is no signed JWT'],
    ];
    for (const [token, why] of refusals) {
      const refused = await refusalOf(url, token);
      expect(refused).toMatchObject({ status: 401, text: expect.stringContaining(why) });
      expect(refused.challenge).toContain('error="invalid_token"');
    }

    await idp.rotate('drop');
    await callWith(url, await idp.token({ sub: 'alice' }));
    expect(await user.skep(['stop', 'jwt'])).toMatchObject({ code: 0 });
    expect(await user.skep(['start', 'jwt'])).toMatchObject({ code: 0 });
    await expect(callWith(url)).rejects.toThrow();
    await callWith(url, await idp.token({ sub: 'alice' }));
    // The old key is in no key set any more, and nothing of before is remembered.
    expect((await refusalOf(url, first)).status).not.toBe(200);
  }, 120_000);

  test('by introspection alone: a server over HTTP is asked for its tools, and never sees token nor secret', async () => {
    const { url: endpoint, clientId, clientSecret } = idp.introspection;
    const args = ['--oidc-introspection-url', endpoint, '--oidc-client-id', clientId, '--transport', 'streamable-http', '--target-port', '8123', ...LOCAL]; // prettier-ignore
    const ran = await user.skep(['run', `npx://${PACKAGE}`, '--name', 'opaque', ...args], {
      env: { SKEP_OIDC_CLIENT_SECRET: clientSecret },
    });
    const url = urlOf(ran);
    expect(ran.stderr).toContain('1 tool');
    expect(ran.stderr).toContain('Warning: without --oidc-audience');
    const { headers, env } = await callWith(url, await idp.token({ sub: 'alice' }, { format: 'opaque' }));
    expect(headers).toHaveProperty('x-forwarded-for');
    expect(headers).not.toHaveProperty('authorization');
    expect(Object.keys(env)).not.toContain('SKEP_OIDC_CLIENT_SECRET');
    expect(await refusalOf(url, 'made-up')).toMatchObject({
      status: 401,
      text: expect.stringContaining('the token is not active'),
    });
    expect(await refusalOf(url)).toMatchObject({ status: 401 });
  }, 120_000);

  test('is not made with an issuer over HTTP or at a private address that was not allowed', async () => {
    const [http = '', atPrivate = ''] = LOCAL;
    for (const [allowed, hint] of [
      [atPrivate, http],
      [http, atPrivate],
    ] as const) {
      const refused = await run('never', '--oidc-issuer', idp.issuer, allowed);
      expect(refused).toMatchObject({ code: 1, stdout: '', stderr: expect.stringContaining(hint) });
    }
    writeFileSync(path.join(user.dir, 'x.json'), JSON.stringify({ name: 'never', image: 'x:1', transport: 'stdio', oidc_config: { issuer: idp.issuer } })); // prettier-ignore
    const imported = await user.skep(['run', '--from-config', path.join(user.dir, 'x.json')]);
    expect(imported).toMatchObject({ code: 1, stderr: expect.stringContaining(http) });
    expect((await user.skep(['list', '--all', '--format', 'json'])).stdout).not.toContain('"never"');
  });

  test.each([
    ['relayed', []],
    ['behind policies', ['--authz-config', 'all.json']],
  ])('has tokens of its clients exchanged for those of its server, %s', async (how, more) => {
    const policies = { version: '1.0', type: 'cedarv1', cedar: { policies: ['permit(principal, action, resource);'] } };
    writeFileSync(path.join(user.dir, 'all.json'), JSON.stringify(policies));
    writeFileSync(path.join(user.dir, 'secret'), EXCHANGER.client_secret);
    const args = more.map((one) => (one === 'all.json' ? path.join(user.dir, one) : one));
    const exchange = ['--token-exchange-url', `${idp.issuer}/token`, '--token-exchange-audience', 'svc', '--token-exchange-client-id', EXCHANGER.client_id, '--token-exchange-client-secret-file', path.join(user.dir, 'secret')];
    const ran = await run(`exchange-${how.length}`, '--transport', 'streamable-http', '--target-port', '8080', '--oidc-issuer', idp.issuer, '--oidc-audience', AUDIENCE, ...exchange, ...LOCAL, ...args);
    const url = urlOf(ran);
    for (const sub of ['ann', 'eve']) {
      const token = await idp.token({ sub });
      const { headers, env } = await callWith(url, token);
      const shown = String(headers['authorization']).replace('Bearer ', '');
      expect(shown).not.toBe(token);
      expect(JSON.parse(Buffer.from(shown.split('.')[1] ?? '', 'base64url').toString())).toMatchObject({
        iss: idp.issuer,
        aud: 'svc',
        sub,
        act: { sub: 'exchanger' },
      });
      expect(JSON.stringify(env)).not.toContain(EXCHANGER.client_secret);
    }
    expect(JSON.stringify(user.leftFiles())).not.toContain(EXCHANGER.client_secret);
  }); // prettier-ignore
});
