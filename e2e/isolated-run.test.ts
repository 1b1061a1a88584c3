import { createServer } from 'node:http';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { lanAddress } from '@skep/cli/runtime/contract/machine-side.ts';
import { npmRegistryWith, type NpmRegistry } from './fixtures/npm-registry.ts';
import { component, title } from './require.ts';
import { ask, openUser, USERS, type TestUser } from './skep.ts';

const sandbox = await component('sandbox');
const host = lanAddress();
const PACKAGE = 'skep-test-reaching';

/** An MCP server over whatever it is told to speak; its tool loads a page and answers with the status and the text. */
const REACHING_SERVER = `#!/usr/bin/env node
import { createServer } from 'node:http';
import { createInterface } from 'node:readline';
const answers = {
  initialize: () => ({ protocolVersion: '2025-06-18', capabilities: { tools: {} }, serverInfo: { name: 'reaching', version: '1' } }),
  'tools/list': () => ({ tools: [{ name: 'load', inputSchema: { type: 'object' } }] }),
  'tools/call': async ({ arguments: { url } }) => {
    const text = await fetch(url).then(async (page) => page.status + ' ' + (await page.text())).catch((error) => 'failed ' + error);
    return { content: [{ type: 'text', text }] };
  },
};
const answer = async ({ id, method, params }) =>
  id === undefined ? undefined : JSON.stringify({ jsonrpc: '2.0', id, result: (await answers[method]?.(params)) ?? {} });
if (process.env.MCP_TRANSPORT === 'stdio') {
  createInterface({ input: process.stdin }).on('line', async (line) => {
    const text = await answer(JSON.parse(line));
    if (text !== undefined) console.log(text);
  });
} else {
  createServer(async (request, response) => {
    let body = '';
    for await (const chunk of request) body += chunk;
    const text = request.method === 'POST' ? await answer(JSON.parse(body)) : undefined;
    if (request.method !== 'POST') response.writeHead(405).end();
    else if (text === undefined) response.writeHead(202).end();
    else response.writeHead(200, { 'content-type': 'application/json' }).end(text);
  }).listen(process.env.MCP_PORT, process.env.MCP_HOST);
}
`;

describe.skipIf(!sandbox.available || host === undefined).each(USERS)(
  title('a server that %s isolates', sandbox),
  (_who, uid) => {
    let registry: NpmRegistry;
    let user: TestUser;
    let port: number;
    const page = createServer((_, response) => void response.end('a page'));
    beforeAll(async () => {
      registry = await npmRegistryWith(PACKAGE, REACHING_SERVER);
      user = openUser({ SKEP_RUNTIME: 'sandbox', npm_config_registry: registry.url }, uid);
      page.listen(0, '0.0.0.0');
      await once(page, 'listening');
      ({ port } = page.address() as AddressInfo);
    });
    afterAll(async () => {
      page.close();
      await user.end();
      await registry[Symbol.asyncDispose]();
    });

    function profile(outbound: object): string {
      const file = path.join(user.dir, 'profile.json');
      writeFileSync(file, JSON.stringify({ network: { outbound } }), { mode: 0o644 });
      return file;
    }

    async function load(url: string, from: string): Promise<unknown> {
      const { result } = await ask(url, 'tools/call', { name: 'load', arguments: { url: from } });
      return (result?.['content'] as { readonly text: string }[] | undefined)?.[0]?.text;
    }

    test.each([
      ['over standard input', []],
      ['over HTTP', ['--transport', 'streamable-http', '--target-port', '3000']],
    ])('reaches what its profile lists and nothing else, %s', async (_how, flags) => {
      const file = profile({ allow_host: [host], allow_port: [port] });
      const isolation = ['--isolate-network', '--permission-profile', file];
      const { code, stdout, stderr } = await user.skep(['run', `npx://${PACKAGE}`, '--name', 'iso', ...isolation, ...flags]); // prettier-ignore
      expect(code, stderr).toBe(0);
      const url = stdout.trim();
      expect(await load(url, `http://${host}:${port}/`)).toBe('200 a page');
      for (const elsewhere of [`http://${host}:${port + 1}/`, 'http://example.com/', registry.url]) {
        expect(await load(url, elsewhere)).toMatch(/^(?:403|failed) /);
      }
      expect(await user.skep(['stop', 'iso'])).toMatchObject({ code: 0 });
      expect(await user.skep(['start', 'iso'])).toMatchObject({ code: 0 });
      expect(await load(url, `http://${host}:${port}/`)).toBe('200 a page');
      expect(await user.skep(['rm', 'iso'])).toMatchObject({ code: 0 });
    });

    test('over HTTP is reached while it reaches nobody', async () => {
      const http = ['--transport', 'streamable-http', '--target-port', '3000'];
      const flags = [...http, '--isolate-network', '--permission-profile', 'none'];
      const { code, stdout, stderr } = await user.skep([
        'run',
        `npx://${PACKAGE}`,
        '--name',
        'iso',
        ...flags,
      ]);
      expect(code, stderr).toBe(0);
      expect(await load(stdout.trim(), `http://${host}:${port}/`)).toMatch(/^(?:403|failed) /);
      expect(await user.skep(['rm', 'iso'])).toMatchObject({ code: 0 });
    });

    test('goes on when the supervisor is killed, and its gateway with it', async () => {
      const file = profile({ allow_host: [host] });
      const isolation = ['--isolate-network', '--permission-profile', file];
      const { stdout } = await user.skep(['run', `npx://${PACKAGE}`, '--name', 'iso', ...isolation]);
      await user.killSupervisor();
      expect(await user.skep(['list'])).toMatchObject({ code: 0 });
      await expect.poll(async () => load(stdout.trim(), `http://${host}:${port}/`).catch(String), { timeout: 20_000 }).toBe('200 a page'); // prettier-ignore
      expect(await user.skep(['rm', 'iso'])).toMatchObject({ code: 0 });
    });
  },
);
