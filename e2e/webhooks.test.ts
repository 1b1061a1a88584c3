import { createHmac } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import type { TLSSocket } from 'node:tls';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { SSEClientTransport } from '@modelcontextprotocol/sdk/client/sse.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { bundled } from './fixtures/bundled.ts';
import { npmRegistryWith, type NpmRegistry } from './fixtures/npm-registry.ts';
import { testAuthority } from './fixtures/test-authority.ts';
import { component, title } from './require.ts';
import { openUser, type TestUser } from './skep.ts';

// A decision point over mutual TLS is asked about every call, with a signature; the official client calls.

const sandbox = await component('sandbox');
const PACKAGE = 'skep-test-webhooks';
const OVER_HTTP = ['--transport', 'streamable-http', '--target-port', '3000'];
const OVER_SSE = ['--transport', 'sse', '--target-port', '3000'];
const KEY = 'a key of bytes\n';

interface Asked {
  readonly who: string;
  readonly signed: boolean;
  readonly question: {
    readonly uid: string;
    readonly mcp_request: { readonly method: string; readonly params?: { readonly name?: string } };
    readonly context: unknown;
  };
}

describe.skipIf(!sandbox.available)(title('webhooks', sandbox), () => {
  let registry: NpmRegistry;
  let user: TestUser;
  let server: Server;
  let config: string;
  const asked: Asked[] = [];

  beforeAll(async () => {
    registry = await npmRegistryWith(PACKAGE, await bundled('tools-server.ts'));
    user = openUser({ SKEP_RUNTIME: 'sandbox', npm_config_registry: registry.url });
    const at = (...file: string[]): string => path.join(user.dir, 'authority', ...file);
    const authority = testAuthority(at());
    const [own, client] = [authority.issue('hooks', { for: ['DNS:localhost'] }), authority.issue('proxy')];
    const read = (...file: string[]): Buffer => readFileSync(path.join(...file));
    const tls = { ca: read(at('ca.pem')), cert: read(own, 'cert.pem'), key: read(own, 'key.pem') };
    server = createServer({ ...tls, requestCert: true, rejectUnauthorized: true }, (req, res) => {
      void text(req).then((body) => {
        const question = JSON.parse(body) as Asked['question'];
        const stamp = String(req.headers['x-skep-timestamp']);
        const signature = createHmac('sha256', KEY).update(`${stamp}.${body}`).digest('hex');
        const signed = req.headers['x-skep-signature'] === `sha256=${signature}`;
        const who = String((req.socket as TLSSocket).getPeerCertificate().subject.CN);
        asked.push({ who, signed, question });
        const { mcp_request: request, uid } = question;
        const isCall = request.method === 'tools/call';
        const patch = [{ op: 'add', path: '/mcp_request/params/arguments/by', value: who }];
        const answer =
          req.url === '/change'
            ? { allowed: true, uid, ...(isCall && { patch_type: 'json_patch', patch }) }
            : { allowed: !(isCall && request.params?.name === 'delete'), uid, reason: 'not today' };
        res.writeHead(200, { 'Content-Type': 'application/json' }).end(JSON.stringify(answer));
      });
    }).listen(0, 'localhost');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    writeFileSync(path.join(user.dir, 'key'), KEY);
    const hook = (name: string, where: string) => ({
      name,
      url: `https://localhost:${port}/${where}`,
      failure_policy: 'fail',
      timeout: '5s',
      hmac_secret_ref: path.join(user.dir, 'key'),
      tls_config: {
        ca_bundle_path: at('ca.pem'),
        client_cert_path: path.join(client, 'cert.pem'),
        client_key_path: path.join(client, 'key.pem'),
      },
    });
    config = path.join(user.dir, 'hooks.json');
    writeFileSync(
      config,
      JSON.stringify({ validating: [hook('judge', 'judge')], mutating: [hook('change', 'change')] }),
    );
  });
  beforeEach(() => void asked.splice(0));
  afterAll(async () => {
    await user.end();
    await registry[Symbol.asyncDispose]();
    server.closeAllConnections();
    await new Promise<void>((resolve) => void server.close(() => resolve()));
  });

  test.each([
    ['stdio', [], false],
    ['streamable HTTP', OVER_HTTP, false],
    ['HTTP with SSE', OVER_SSE, true],
  ])('judge and change calls of a server over %s', async (how, flags, older) => {
    const name = `hooks-${how.length}`;
    const ran = await user.skep(['run', `npx://${PACKAGE}`, '--name', name, ...flags, '--webhook-config', config]); // prettier-ignore
    expect(ran.code, ran.stderr).toBe(0);
    expect(asked).toEqual([]);
    const url = new URL(ran.stdout.trim());
    const client = new Client({ name: 'test', version: '1' });
    await client.connect(older ? new SSEClientTransport(url) : new StreamableHTTPClientTransport(url));
    const answer = await client.callTool({ name: 'read', arguments: { n: 1 } });
    expect(answer).toMatchObject({ content: [{ text: '{"name":"read","given":{"n":1,"by":"proxy"}}' }] });
    const refused = client.callTool({ name: 'delete', arguments: {} });
    await expect(refused).rejects.toThrow(/Request denied by policy/u);
    await client.close();
    const methods = ['initialize', 'notifications/initialized', 'tools/call', 'tools/call'];
    expect(asked.map(({ question }) => question.mcp_request.method)).toEqual(
      // The one that changes calls, then the one that judges them.
      methods.flatMap((method) => [method, method]),
    );
    expect(asked.every(({ who, signed }) => who === 'proxy' && signed)).toBe(true);
    const transport = flags[1] ?? 'stdio';
    expect(asked[0]?.question.context).toEqual({ server_name: name, source_ip: '127.0.0.1', transport });
    expect(await user.skep(['rm', name])).toMatchObject({ code: 0 });
  });
});
