import { randomBytes } from 'node:crypto';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { freePort } from './fixtures/free-port.ts';
import { MOODY_SERVER } from './fixtures/moody-server.ts';
import { npmRegistryWith, type NpmRegistry } from './fixtures/npm-registry.ts';
import { TINY_SERVER } from './fixtures/tiny-server.ts';
import { ensureTinyImage } from './images.ts';
import { component, title } from './require.ts';
import { openUser, type TestUser } from './skep.ts';

// What a person is told by the command that starts a server, where not everything is as they may believe.

const engine = await component('engine');
const sandbox = await component('sandbox');

const PACKAGE = 'skep-test-told';
const PUBLISHER_META = 'io.modelcontextprotocol.registry/publisher-provided';

/** Answers every request over HTTP, where its environment says. */
const HTTP_SERVER = `#!/usr/bin/env node
import http from 'node:http';
const result = { protocolVersion: '2025-06-18', capabilities: {}, serverInfo: { name: 'h', version: '1' } };
http.createServer(async (request, response) => {
  let text = '';
  for await (const chunk of request) text += chunk;
  response.setHeader('content-type', 'application/json');
  response.end(JSON.stringify({ jsonrpc: '2.0', id: JSON.parse(text || '{}').id ?? null, result }));
}).listen(Number(process.env.MCP_PORT), process.env.MCP_HOST);
`;

let user: TestUser;

function file(name: string, content: object): string {
  const at = path.join(user.dir, name);
  mkdirSync(path.dirname(at), { recursive: true });
  writeFileSync(at, JSON.stringify(content));
  return at;
}

describe.skipIf(!sandbox.available)(title('a run in the sandbox', sandbox), () => {
  let registry: NpmRegistry;
  beforeEach(() => {
    user = openUser({ SKEP_RUNTIME: 'sandbox' });
  });
  afterEach(async () => {
    await user.end();
    await registry[Symbol.asyncDispose]();
  });

  async function told(script: string, ...args: string[]) {
    registry = await npmRegistryWith(PACKAGE, script);
    const ran = await user.skep(['run', ...args], { env: { npm_config_registry: registry.url } });
    expect(ran.code, ran.stderr).toBe(0);
    return ran;
  }

  test('says that hosts and ports of a permission profile are kept by nothing', async () => {
    const outbound = { allow_host: ['example.com'], allow_port: [443] };
    const profile = file('profile.json', { network: { outbound } });
    const { stderr } = await told(MOODY_SERVER, `npx://${PACKAGE}`, '--permission-profile', profile);
    expect(stderr).toMatch(/^ *Not Enforced: .*hosts and ports .*not enforced/m);
  });

  test('says what the server answered with, what its tools weigh, and what it may do; so does status', async () => {
    const { stderr } = await told(MOODY_SERVER, `npx://${PACKAGE}`);
    expect(stderr).toMatch(new RegExp(`^✓ ${PACKAGE} is running \\(moody 1\\): 1 tool, ~\\d+ tokens$`, 'm'));
    expect(stderr).toMatch(/^ +Writes: +no files of this machine$/m);
    const status = await user.skep(['status', PACKAGE, '--format', 'json']);
    expect(JSON.parse(status.stdout)).toMatchObject({
      permissions: { runs_in: ['sandbox'], network: ['any host'], secrets: [] },
      server: { name: 'moody', version: '1', all_tools: true, tools: [{ name: 'smile' }] },
    });
  });

  test('says what --network host opens', async () => {
    const { stderr } = await told(MOODY_SERVER, `npx://${PACKAGE}`, '--network', 'host');
    expect(stderr).toMatch(/^ *Not Enforced: .*network of this machine.*127\.0\.0\.1/m);
  });

  test('says that flags of a build do nothing there', async () => {
    const { stderr } = await told(MOODY_SERVER, `npx://${PACKAGE}`, '--runtime-add-package', 'jq');
    expect(stderr).toMatch(/^Warning: .*--runtime-add-package has no effect in the sandbox$/m);
  });

  test('says what of an imported file is kept without effect', async () => {
    const first = await told(MOODY_SERVER, `npx://${PACKAGE}`);
    const exported = path.join(user.dir, 'export.json');
    expect((await user.skep(['export', PACKAGE, exported])).code, first.stderr).toBe(0);
    expect((await user.skep(['rm', PACKAGE])).code).toBe(0);
    const config = JSON.parse(readFileSync(exported, 'utf8')) as object;
    const imported = file('import.json', {
      ...config,
      rate_limit_namespace: 'x',
      mcpserver_generation: 2,
    });
    const env = { npm_config_registry: registry.url };
    const again = await user.skep(['run', '--from-config', imported], { env });
    expect(again.code, again.stderr).toBe(0);
    expect(again.stderr).toMatch(/rate_limit_namespace/);
    expect(again.stderr).toMatch(/mcpserver_generation/);
  });

  test('of a file whose name is taken names what helps, and no flag that cannot be given with it', async () => {
    await told(MOODY_SERVER, `npx://${PACKAGE}`);
    const exported = path.join(user.dir, 'export.json');
    expect((await user.skep(['export', PACKAGE, exported])).code).toBe(0);
    const { code, stderr } = await user.skep(['run', '--from-config', exported]);
    expect(code).toBe(1);
    expect(stderr).toContain(`skep rm ${PACKAGE}`);
    expect(stderr).not.toContain('--name');
  });

  test('serves at the port that its catalogue names', async () => {
    const port = await freePort();
    const entry = {
      name: `com.example/${PACKAGE}`,
      version: '1.0.0',
      description: 'told',
      packages: [
        {
          registryType: 'npm',
          identifier: PACKAGE,
          version: '1.0.0',
          transport: { type: 'streamable-http', url: 'http://localhost:8080/mcp' },
        },
      ],
      _meta: { [PUBLISHER_META]: { 'io.github.stacklok': { [PACKAGE]: { proxy_port: port } } } },
    };
    expect(await user.skep(['config', 'set-registry', file('catalogue.json', { servers: [entry] })])).toMatchObject({ code: 0 }); // prettier-ignore
    const { stdout } = await told(HTTP_SERVER, entry.name, '--target-port', String(await freePort()));
    expect(new URL(stdout.trim()).port).toBe(String(port));
  });
});

describe.skipIf(!engine.available)(title('a run of an image', engine), () => {
  beforeEach(() => {
    user = openUser({ SKEP_RUNTIME: 'docker' });
  });
  afterEach(() => user.end());

  test('says that nobody has verified where it comes from, when asked to warn', async () => {
    const name = `t${randomBytes(3).toString('hex')}-told`;
    const image = await ensureTinyImage(TINY_SERVER);
    const ran = await user.skep(['run', image, '--name', name, '--image-verification', 'warn']);
    expect(ran.code, ran.stderr).toBe(0);
    expect(ran.stderr).toMatch(/^Warning: where the image .* comes from is not verified/m);
  });
});

describe('what is told about an entry of a catalogue', () => {
  beforeEach(() => {
    user = openUser();
  });
  afterEach(() => user.end());

  test('steers no terminal by the names of its variables', async () => {
    const environmentVariables = [{ name: 'TOK\u001B[31mEN', description: 'red' }];
    const entry = {
      name: 'a.b/esc',
      version: '1.0.0',
      description: 'escapes',
      packages: [
        {
          registryType: 'npm',
          identifier: 'x',
          version: '1.0.0',
          transport: { type: 'stdio' },
          environmentVariables,
        },
      ],
    };
    expect(await user.skep(['config', 'set-registry', file('catalogue.json', { servers: [entry] })])).toMatchObject({ code: 0 }); // prettier-ignore
    const { code, stdout, stderr } = await user.skep(['registry', 'info', 'a.b/esc']);
    expect(code, stderr).toBe(0);
    expect(stdout).toContain('a.b/esc');
    expect(stdout + stderr).not.toContain('\u001B');
  });
});
